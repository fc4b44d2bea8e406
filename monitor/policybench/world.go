// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"math/rand/v2"
)

// scenario is a kind of policy, with the documents and lists that it is about.
type scenario struct {
	name      string
	users     []string
	owners    map[string]string              // of documents
	friends   map[string]map[string]struct{} // of owners
	blacklist map[string]struct{}
	allows    func(s *scenario, user, document string) bool
}

// question is whether a user may read a document.
type question struct{ user, document string }

// befriend gives every user friends, at random.
func (s *scenario) befriend(random *rand.Rand, friends int) {
	s.friends = make(map[string]map[string]struct{}, len(s.users))
	for _, user := range s.users {
		list := make(map[string]struct{}, friends)
		for len(list) < friends {
			if friend := s.users[random.IntN(len(s.users))]; friend != user {
				list[friend] = struct{}{}
			}
		}
		s.friends[user] = list
	}
}

func (s *scenario) lists(owner, friend string) bool {
	_, found := s.friends[owner][friend]
	return found
}

func population(users int) []string {
	all := make([]string, users)
	for i := range all {
		all[i] = fmt.Sprintf("user%05d", i)
	}
	return all
}

// documents gives each of the owners some documents.
func documents(owners []string, each int) map[string]string {
	all := make(map[string]string)
	for _, owner := range owners {
		for i := range each {
			all[fmt.Sprintf("/corpus/%s/%d.txt", owner, i)] = owner
		}
	}
	return all
}

func owns(s *scenario, user, document string) bool { return s.owners[document] == user }

func befriended(s *scenario, user, document string) bool {
	return owns(s, user, document) || s.lists(s.owners[document], user)
}

func befriendedTwice(s *scenario, user, document string) bool {
	if befriended(s, user, document) {
		return true
	}
	for friend := range s.friends[s.owners[document]] {
		if s.lists(friend, user) {
			return true
		}
	}
	return false
}

func unlisted(s *scenario, user, _ string) bool {
	_, found := s.blacklist[user]
	return !found
}

// scenarios are the measured policies. They say the same in each engine's language.
func scenarios(random *rand.Rand) []*scenario {
	private := &scenario{name: "private", users: population(1000), allows: owns}
	private.owners = documents(private.users, 5)

	few := &scenario{name: "friends (100)", users: population(1000), allows: befriended}
	few.owners = documents(few.users, 5)
	few.befriend(random, 100)

	// Ten owners with 10,000 friends each; nobody else has documents.
	many := &scenario{name: "friends (10,000)", users: population(20_000), allows: befriended}
	everybody := many.users
	many.users = everybody[:10]
	many.owners = documents(many.users, 5)
	many.friends = make(map[string]map[string]struct{})
	for _, owner := range many.users {
		list := make(map[string]struct{}, 10_000)
		for len(list) < 10_000 {
			list[everybody[random.IntN(len(everybody))]] = struct{}{}
		}
		many.friends[owner] = list
	}
	many.users = everybody

	// Of 5,000 users, about 86 in 100 are friends of somebody's 100 friends.
	twice := &scenario{name: "friends of friends", users: population(5000), allows: befriendedTwice}
	twice.owners = documents(twice.users, 1)
	twice.befriend(random, 100)

	listed := &scenario{name: "blacklist (2,250)", users: population(5000), allows: unlisted,
		blacklist: make(map[string]struct{})}
	listed.owners = documents(listed.users[:100], 5)
	for len(listed.blacklist) < 2250 {
		listed.blacklist[listed.users[random.IntN(len(listed.users))]] = struct{}{}
	}
	return []*scenario{private, few, many, twice, listed}
}

// questions draws questions at random, and as many again that are answered by yes and by no.
func (s *scenario) questions(random *rand.Rand, count int) (mixed, allowed, denied []question) {
	var names []string
	for _, user := range s.users {
		for i := 0; ; i++ {
			name := fmt.Sprintf("/corpus/%s/%d.txt", user, i)
			if _, found := s.owners[name]; !found {
				break
			}
			names = append(names, name)
		}
	}
	draw := func() question {
		return question{s.users[random.IntN(len(s.users))], names[random.IntN(len(names))]}
	}
	for range count {
		mixed = append(mixed, draw())
	}
	for len(allowed) < count || len(denied) < count {
		q := draw()
		if s.name == "private" && len(allowed) < count {
			q.user = s.owners[q.document] // nobody else may read it
		}
		if s.allows(s, q.user, q.document) {
			allowed = append(allowed, q)
		} else {
			denied = append(denied, q)
		}
	}
	return mixed, allowed[:count], denied[:count]
}
