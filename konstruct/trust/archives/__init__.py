"""A tenant's memory, or one person's, in one file, and back."""

from konstruct.trust.archives.exporting import export_memory
from konstruct.trust.archives.importing import import_memory
from konstruct.trust.archives.manifest import ArchiveRefused, Manifest, read_manifest

__all__ = ["ArchiveRefused", "Manifest", "export_memory", "import_memory", "read_manifest"]
