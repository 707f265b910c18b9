"""What pages are made of: layouts, tables of declared cells, panes, lists read in pages, and dialogs that ask for a reason."""
