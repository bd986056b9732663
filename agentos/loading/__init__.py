"""From what a manifest names to a pack: a factory, a module or a package.

finder.py         an entry of a manifest to what makes the pack
modules.py        modules by name or path, made anew on reload
entry_points.py   what installed distributions announce
installed.py      what is installed and what is missing, without importing
curated.py        manifests of curated packs, with a report
curated_packs.py  the table of curated packs
pack_files.py     the files of a pack, for the lock
"""
