#!/bin/sh
# A program of a user: step.sh HOSTS [slow|fail|silent|hang HOST], which prints a time as one that all hosts wait for.
time=10.0${#1}
case ",$1," in
*",${3-none},"*)
    case "$2" in
    slow) time=15.0${#1} ;;
    fail) echo "cannot open device" >&2; exit 7 ;;
    silent) exit 0 ;;
    # A child that does not end with it.
    hang) sleep 300 & sleep 300 ;;
    esac ;;
esac
echo "step 3 of 3"
echo "time: $time s"
