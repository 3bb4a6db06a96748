"""How pages write dates and times: one form, everywhere in the admin."""
