"""MCP: remembering, searching and correcting as tools of Model Context Protocol hosts."""
