FROM python:3.12-slim
WORKDIR /opt/lettaweb
COPY requirements.txt .
RUN sed '/^# development/,$d' requirements.txt > runtime.txt && pip install --no-cache-dir -r runtime.txt
COPY . .
RUN useradd --system --home-dir /var/lib/lettaweb --create-home lettaweb
ENV LETTAWEB_DATA_DIR=/var/lib/lettaweb PYTHONUNBUFFERED=1
USER lettaweb
EXPOSE 8283
CMD ["python", "manage.py", "serve"]
