module shai.dev/kernel/tests/init

go 1.26
