export STAGE_PATH=”/shared/grok1”
