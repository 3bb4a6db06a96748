"""Exports a tenant's memory, or one person's, into one file, and imports it."""

from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from konstruct.privacy.archive.manifest import ArchiveRefused, Manifest, read_manifest

__all__ = ["ArchiveRefused", "Manifest", "export_memory", "import_memory", "read_manifest"]
