"""After any fault of processes or servers no message is lost, duplicated or misdirected."""
