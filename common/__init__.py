"""What the scripts share. A package with this file goes before any other `common` that Python finds later."""
