module shai.dev/monitor

go 1.26
