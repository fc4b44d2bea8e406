module shai.dev/freebsd/init

go 1.26
