"""`nki.framework`: the kernel object that drivers take."""
