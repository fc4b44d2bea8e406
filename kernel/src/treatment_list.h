/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The list of treatments (treatment.h): numbers and names of the calls. Calls
 * for the compatibility with releases from 4 on have the name of what they are
 * the older form of. Those of 4.3BSD are not in the list.
 */
#ifndef SHAI_TREATMENT_LIST_H
#define SHAI_TREATMENT_LIST_H

/* clang-format off */

/*
 * Calls that act on files, directories, memory or credentials, which they find
 * in the process when they begin and forget when they end. Therefore another
 * context's can be exchanged for them.
 */
#define CALLS_NATIVE(_) \
	_(3, read) _(4, write) _(5, open) _(6, close) _(9, link) _(10, unlink) \
	_(12, chdir) _(13, fchdir) _(14, mknod) _(15, chmod) _(16, chown) \
	_(17, break) _(18, getfsstat) _(20, getpid) _(23, setuid) \
	_(24, getuid) _(25, geteuid) _(27, recvmsg) _(28, sendmsg) \
	_(29, recvfrom) _(30, accept) _(31, getpeername) _(32, getsockname) \
	_(33, access) _(34, chflags) _(35, fchflags) _(36, sync) \
	_(39, getppid) _(41, dup) _(42, pipe) _(43, getegid) _(47, getgid) \
	_(49, getlogin) _(56, revoke) _(57, symlink) _(58, readlink) \
	_(60, umask) _(61, chroot) _(65, msync) _(72, vadvise) _(73, munmap) \
	_(74, mprotect) _(75, madvise) _(79, getgroups) \
	_(80, setgroups) _(81, getpgrp) _(89, getdtablesize) _(90, dup2) \
	_(92, fcntl) _(93, select) _(95, fsync) _(97, socket) _(98, connect) \
	_(104, bind) _(105, setsockopt) _(106, listen) _(116, gettimeofday) \
	_(118, getsockopt) _(120, readv) _(121, writev) _(123, fchown) \
	_(124, fchmod) _(126, setreuid) _(127, setregid) _(128, rename) \
	_(132, mkfifo) _(133, sendto) _(134, shutdown) _(135, socketpair) \
	_(136, mkdir) _(137, rmdir) _(138, utimes) _(157, statfs) \
	_(158, fstatfs) _(160, lgetfh) _(161, getfh) _(162, getdomainname) \
	_(164, uname) _(173, pread) _(174, pwrite) _(181, setgid) \
	_(182, setegid) _(183, seteuid) _(188, stat) _(189, fstat) \
	_(190, lstat) _(191, pathconf) _(192, fpathconf) _(194, getrlimit) \
	_(196, getdirentries) _(197, mmap) _(199, lseek) _(200, truncate) \
	_(201, ftruncate) _(202, __sysctl) _(203, mlock) _(204, munlock) \
	_(205, undelete) _(206, futimes) _(207, getpgid) _(209, poll) \
	_(232, clock_gettime) _(234, clock_getres) _(250, minherit) \
	_(253, issetugid) _(254, lchown) _(272, getdents) _(274, lchmod) \
	_(276, lutimes) _(278, nstat) _(279, nfstat) _(280, nlstat) \
	_(289, preadv) _(290, pwritev) _(297, fhstatfs) _(298, fhopen) \
	_(299, fhstat) _(310, getsid) _(311, setresuid) _(312, setresgid) \
	_(326, __getcwd) _(336, sendfile) _(347, __acl_get_file) \
	_(348, __acl_set_file) _(349, __acl_get_fd) _(350, __acl_set_fd) \
	_(351, __acl_delete_file) _(352, __acl_delete_fd) \
	_(353, __acl_aclcheck_file) _(354, __acl_aclcheck_fd) \
	_(356, extattr_set_file) _(357, extattr_get_file) \
	_(358, extattr_delete_file) _(360, getresuid) _(361, getresgid) \
	_(371, extattr_set_fd) _(372, extattr_get_fd) \
	_(373, extattr_delete_fd) _(376, eaccess) _(386, __mac_get_fd) \
	_(387, __mac_get_file) _(388, __mac_set_fd) _(389, __mac_set_file) \
	_(391, lchflags) _(392, uuidgen) _(393, sendfile) _(395, getfsstat) \
	_(396, statfs) _(397, fstatfs) _(398, fhstatfs) _(410, __mac_get_link) \
	_(411, __mac_set_link) _(412, extattr_set_link) \
	_(413, extattr_get_link) _(414, extattr_delete_link) \
	_(425, __acl_get_link) _(426, __acl_set_link) \
	_(427, __acl_delete_link) _(428, __acl_aclcheck_link) \
	_(437, extattr_list_fd) _(438, extattr_list_file) \
	_(439, extattr_list_link) _(475, pread) _(476, pwrite) _(477, mmap) \
	_(478, lseek) _(479, truncate) _(480, ftruncate) _(482, shm_open) \
	_(483, shm_unlink) _(489, faccessat) _(490, fchmodat) _(491, fchownat) \
	_(493, fstatat) _(494, futimesat) _(495, linkat) _(496, mkdirat) \
	_(497, mkfifoat) _(498, mknodat) _(499, openat) _(500, readlinkat) \
	_(501, renameat) _(502, symlinkat) _(503, unlinkat) \
	_(504, posix_openpt) _(509, closefrom) _(513, lpathconf) \
	_(515, __cap_rights_get) _(516, cap_enter) _(517, cap_getmode) \
	_(523, getloginclass) _(530, posix_fallocate) _(531, posix_fadvise) \
	_(533, cap_rights_limit) _(534, cap_ioctls_limit) \
	_(535, cap_ioctls_get) _(536, cap_fcntls_limit) _(537, cap_fcntls_get) \
	_(538, bindat) _(539, connectat) _(540, chflagsat) _(541, accept4) \
	_(542, pipe2) _(546, futimens) _(547, utimensat) _(550, fdatasync) \
	_(551, fstat) _(552, fstatat) _(553, fhstat) _(554, getdirentries) \
	_(555, statfs) _(556, fstatfs) _(557, getfsstat) _(558, fhstatfs) \
	_(559, mknodat) _(563, getrandom) _(564, getfhat) _(565, fhlink) \
	_(566, fhlinkat) _(567, fhreadlink) _(568, funlinkat) \
	_(569, copy_file_range) _(570, __sysctlbyname) _(571, shm_open2) \
	_(572, shm_rename) _(574, __realpathat) _(575, close_range) \
	_(577, __specialfd) _(580, fspacectl) _(585, timerfd_create) \
	_(586, timerfd_gettime) _(587, timerfd_settime) _(590, fchroot) \
	_(593, inotify_add_watch_at) _(594, inotify_rm_watch) \
	_(595, getgroups) _(596, setgroups)

/*
 * Calls that act on the thread, on the process as a whole, on other processes
 * or on the machine, or remember the process that makes them; drivers and
 * modules among them.
 */
#define CALLS_OWN(_) \
	_(1, exit) _(21, mount) _(22, unmount) _(37, kill) _(51, acct) \
	_(53, sigaltstack) _(54, ioctl) _(55, reboot) _(85, swapon) \
	_(100, getpriority) _(122, settimeofday) _(140, adjtime) \
	_(148, quotactl) _(163, setdomainname) _(165, sysarch) _(169, semsys) \
	_(170, msgsys) _(171, shmsys) _(176, ntp_adjtime) _(220, __semctl) \
	_(221, semget) _(222, semop) _(224, msgctl) _(225, msgget) \
	_(226, msgsnd) _(227, msgrcv) _(228, shmat) _(229, shmctl) \
	_(230, shmdt) _(231, shmget) _(233, clock_settime) _(240, nanosleep) \
	_(241, ffclock_getcounter) _(242, ffclock_setestimate) \
	_(243, ffclock_getestimate) _(244, clock_nanosleep) \
	_(247, clock_getcpuclockid2) _(248, ntp_gettime) _(300, modnext) \
	_(301, modstat) _(302, modfnext) _(303, modfind) _(304, kldload) \
	_(305, kldunload) _(306, kldfind) _(307, kldnext) _(308, kldstat) \
	_(309, kldfirstmod) _(321, yield) _(324, mlockall) _(325, munlockall) \
	_(328, sched_getparam) _(330, sched_getscheduler) _(331, sched_yield) \
	_(332, sched_get_priority_max) _(333, sched_get_priority_min) \
	_(334, sched_rr_get_interval) _(335, utrace) _(337, kldsym) \
	_(340, sigprocmask) _(341, sigsuspend) _(342, sigaction) \
	_(343, sigpending) _(344, sigreturn) _(345, sigtimedwait) \
	_(346, sigwaitinfo) _(355, extattrctl) _(362, kqueue) _(363, kevent) \
	_(374, __setugid) _(378, nmount) _(384, __mac_get_proc) \
	_(385, __mac_set_proc) _(390, kenv) _(400, ksem_close) \
	_(401, ksem_post) _(402, ksem_wait) _(403, ksem_trywait) \
	_(404, ksem_init) _(405, ksem_open) _(406, ksem_unlink) \
	_(407, ksem_getvalue) _(408, ksem_destroy) _(409, __mac_get_pid) \
	_(416, sigaction) _(417, sigreturn) _(421, getcontext) \
	_(422, setcontext) _(423, swapcontext) _(424, swapoff) _(429, sigwait) \
	_(431, thr_exit) _(432, thr_self) _(433, thr_kill) _(434, _umtx_lock) \
	_(435, _umtx_unlock) _(441, ksem_timedwait) _(442, thr_suspend) \
	_(443, thr_wake) _(444, kldunloadf) _(445, audit) _(446, auditon) \
	_(447, getauid) _(448, setauid) _(449, getaudit) _(450, setaudit) \
	_(451, getaudit_addr) _(452, setaudit_addr) _(453, auditctl) \
	_(454, _umtx_op) _(456, sigqueue) _(457, kmq_open) _(458, kmq_setattr) \
	_(459, kmq_timedreceive) _(460, kmq_timedsend) _(462, kmq_unlink) \
	_(463, abort2) _(471, sctp_peeloff) _(472, sctp_generic_sendmsg) \
	_(473, sctp_generic_sendmsg_iov) _(474, sctp_generic_recvmsg) \
	_(481, thr_kill2) _(486, cpuset_getid) _(487, cpuset_getaffinity) \
	_(506, jail_get) _(508, jail_remove) _(510, __semctl) _(511, msgctl) \
	_(512, shmctl) _(519, pdkill) _(520, pdgetpid) _(522, pselect) \
	_(524, setloginclass) _(525, rctl_get_racct) _(526, rctl_get_rules) \
	_(527, rctl_get_limits) _(528, rctl_add_rule) _(529, rctl_remove_rule) \
	_(545, ppoll) _(560, kevent) _(561, cpuset_getdomain) \
	_(573, sigfastblock) _(581, sched_getcpu) _(582, swapoff) \
	_(583, kqueuex) _(588, kcmp) _(591, setcred) _(598, jail_remove_jd)

/*
 * Calls that change what all contexts of the process share, or tell what
 * others did: timers, limits, priorities, names, children, locks of open
 * files, which pages are in memory. Of a monitored context they go to its
 * monitor (shared_state.h).
 */
#define CALLS_SHARED(_) \
	_(7, wait4) _(26, ptrace) _(45, ktrace) _(50, setlogin) \
	_(78, mincore) _(82, setpgid) _(83, setitimer) _(86, getitimer) \
	_(96, setpriority) _(117, getrusage) _(131, flock) \
	_(147, setsid) _(166, rtprio) _(175, setfib) \
	_(195, setrlimit) _(235, ktimer_create) _(236, ktimer_delete) \
	_(237, ktimer_settime) _(238, ktimer_gettime) \
	_(239, ktimer_getoverrun) _(327, sched_setparam) \
	_(329, sched_setscheduler) _(461, kmq_notify) _(464, thr_set_name) \
	_(466, rtprio_thread) _(484, cpuset) _(485, cpuset_setid) \
	_(488, cpuset_setaffinity) _(532, wait6) _(544, procctl) \
	_(562, cpuset_setdomain) _(584, membarrier) _(589, getrlimitusage)

#define CALLS_FORK(_) \
	_(2, fork) _(66, vfork) _(251, rfork) _(518, pdfork)

#define CALLS_EXECUTE(_) \
	_(59, execve) _(415, __mac_execve) _(492, fexecve)

/*
 * Threads; what the kernel does later in the address space that the process
 * then has (asynchronous I/O, profiling, extended errors); another jail;
 * daemons that serve in the kernel and make threads there; calls that lead to
 * any other call, or to code of other modules; and those that do nothing.
 */
#define CALLS_REFUSED(_) \
	_(430, thr_create) _(455, thr_new) _(255, aio_read) _(256, aio_write) \
	_(257, lio_listio) _(314, aio_return) _(315, aio_suspend) \
	_(316, aio_cancel) _(317, aio_error) _(318, aio_read) \
	_(319, aio_write) _(320, lio_listio) _(359, aio_waitcomplete) \
	_(465, aio_fsync) _(543, aio_mlock) _(578, aio_writev) \
	_(579, aio_readv) _(44, profil) _(592, exterrctl) _(338, jail) \
	_(436, jail_attach) _(507, jail_set) _(597, jail_attach_jd) \
	_(154, nlm_syscall) _(155, nfssvc) _(505, gssd_syscall) \
	_(576, rpctls_syscall) _(0, syscall) _(198, __syscall) \
	_(339, nnpfs_syscall) _(377, afs3_syscall) _(394, mac_syscall) \
	_(69, sbrk) _(70, sstk)

#endif
