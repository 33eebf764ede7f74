"""Tool calls that a model wrote into its text, read in one go: XML, then JSON, then call syntax.

A call counts where it stands by itself, as models write calls. What is quoted, weighed, refused or a result stays text.
"""
