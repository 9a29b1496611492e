"""Who may come in (guard), who may do what (rights), and the groups that say so (groups)."""
