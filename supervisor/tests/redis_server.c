/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

#define AUTH "auth-4d5e0b7c"
#define RESET "reset-91f2a6d3"
#define ATTEMPTS 6000 /* of a hundredth of a second: far more than a busy machine needs */

static void
configure(struct redis_server *server, const char *file)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fprintf(out,
	    "port 0\nunixsocket \"%s\"\nunixsocketperm 700\ndir \"%s\"\ndatabases 1\n"
	    "save \"\"\nappendonly no\nacl-pubsub-default resetchannels\nlogfile \"%s/log\"\n"
	    "user default off resetpass resetkeys resetchannels -@all\n"
	    "user administrator on >boss ~* &* +@all\n"
	    "rename-command AUTH " AUTH "\nrename-command HELLO \"\"\n"
	    "rename-command RESET " RESET "\n",
	    server->store.path, server->directory, server->directory);
	assert_int_equal(fclose(out), 0);
}

static bool
connected(struct redis_server *server)
{
	redisReply *reply;
	bool good;

	server->administrator = redisConnectUnix(server->store.path);
	assert_non_null(server->administrator);
	reply = redisCommand(server->administrator, AUTH " administrator boss");
	good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
	if (reply != NULL)
		freeReplyObject(reply);
	if (!good)
		redisFree(server->administrator);
	return good;
}

void
redis_server_start(struct redis_server *server)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	char file[128];

	memset(server, 0, sizeof(*server));
	strcpy(server->directory, "/tmp/supervisor-test.XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->store.path, sizeof(server->store.path), "%s/socket", server->directory);
	strcpy(server->store.auth, AUTH);
	strcpy(server->store.reset, RESET);
	snprintf(file, sizeof(file), "%s/redis.conf", server->directory);
	configure(server, file);
	server->pid = fork();
	assert_true(server->pid >= 0);
	if (server->pid == 0) {
		execlp("redis-server", "redis-server", file, (char *)NULL);
		_exit(127);
	}
	for (int attempt = 0; !connected(server); attempt++) {
		assert_int_equal(waitpid(server->pid, NULL, WNOHANG), 0);
		assert_true(attempt < ATTEMPTS);
		nanosleep(&moment, NULL);
	}
}

static redisReply *
command(struct redis_server *server, const char *format, va_list arguments)
{
	redisReply *reply = redisvCommand(server->administrator, format, arguments);

	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", format, reply->str);
	return reply;
}

void
redis_server_do(struct redis_server *server, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	freeReplyObject(command(server, format, arguments));
	va_end(arguments);
}

char *
redis_server_get(struct redis_server *server, const char *key)
{
	redisReply *reply = redisCommand(server->administrator, "GET %s", key);
	char *value;

	assert_non_null(reply);
	value = strdup(reply->type == REDIS_REPLY_STRING ? reply->str : "");
	freeReplyObject(reply);
	assert_non_null(value);
	return value;
}

void
redis_server_stop(struct redis_server *server)
{
	static const char *const files[] = {"socket", "redis.conf", "log"};
	char path[128];

	redisFree(server->administrator);
	assert_int_equal(kill(server->pid, SIGKILL), 0);
	assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", server->directory, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(server->directory), 0);
}
