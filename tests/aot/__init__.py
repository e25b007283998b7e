"""The programs of whole models compiled for TPUs that are not there."""
