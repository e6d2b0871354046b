"""Files of other programs: their text is translated, everything else stays as it is.

A format is a module with ``read``, which finds the blocks of a file (`document`): paragraphs, headings, cells,
attributes that are text. ``translate_file`` translates them with their markup, and lets the document write itself anew.
"""
