// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// cedarRules are the rules of each scenario. Cedar has no join: friends of friends are
// groups of groups, of which it finds the members.
var cedarRules = map[string]string{
	"private": `permit (principal, action == Action::"read", resource) when { principal == resource.owner };`,
	"friends (100)": `permit (principal, action == Action::"read", resource) when { principal == resource.owner };
permit (principal, action == Action::"read", resource) when { resource.owner.friends.contains(principal) };`,
	"friends of friends": `permit (principal, action == Action::"read", resource) when { principal == resource.owner };
permit (principal, action == Action::"read", resource) when { principal in resource.owner.friends };
permit (principal, action == Action::"read", resource) when { principal in resource.owner.circle };`,
	"blacklist (2,250)": `permit (principal, action == Action::"read", resource) unless { List::"blacklist".users.contains(principal) };`,
}

func init() { cedarRules["friends (10,000)"] = cedarRules["friends (100)"] }

type cedarEngine struct {
	policies *cedar.PolicySet
	entities cedar.EntityMap
}

func uid(kind, name string) cedar.EntityUID {
	return cedar.NewEntityUID(cedar.EntityType(kind), cedar.String(name))
}

func newCedar(s *scenario) (engine, error) {
	policies, err := cedar.NewPolicySetFromBytes("documents.cedar", []byte(cedarRules[s.name]))
	if err != nil {
		return nil, fmt.Errorf("parse the policies of %s: %w", s.name, err)
	}
	entities := make(cedar.EntityMap)
	put := func(entity cedar.Entity) { entities[entity.UID] = entity }
	for document, owner := range s.owners {
		put(cedar.Entity{UID: uid("Document", document),
			Attributes: cedar.NewRecord(cedar.RecordMap{"owner": uid("User", owner)})})
	}
	put(cedar.Entity{UID: uid("List", "blacklist"),
		Attributes: cedar.NewRecord(cedar.RecordMap{"users": users(s.blacklist)})})
	groups := s.name == "friends of friends"
	parents := make(map[string][]cedar.EntityUID) // of users
	circles := make(map[string][]cedar.EntityUID) // of groups of friends
	for owner, list := range s.friends {
		for friend := range list {
			parents[friend] = append(parents[friend], uid("Friends", owner))
			circles[friend] = append(circles[friend], uid("Circle", owner))
		}
	}
	for _, user := range s.users {
		entity := cedar.Entity{UID: uid("User", user)}
		if groups {
			entity.Attributes = cedar.NewRecord(cedar.RecordMap{
				"friends": uid("Friends", user), "circle": uid("Circle", user)})
			entity.Parents = cedar.NewEntityUIDSet(parents[user]...)
			put(cedar.Entity{UID: uid("Friends", user), Parents: cedar.NewEntityUIDSet(circles[user]...)})
			put(cedar.Entity{UID: uid("Circle", user)})
		} else {
			entity.Attributes = cedar.NewRecord(cedar.RecordMap{"friends": users(s.friends[user])})
		}
		put(entity)
	}
	return &cedarEngine{policies, entities}, nil
}

func users(names map[string]struct{}) types.Value {
	values := make([]types.Value, 0, len(names))
	for name := range names {
		values = append(values, uid("User", name))
	}
	return cedar.NewSet(values...)
}

func (c *cedarEngine) prepare(q question) (func() (bool, error), error) {
	request := cedar.Request{Principal: uid("User", q.user), Action: uid("Action", "read"),
		Resource: uid("Document", q.document)}
	return func() (bool, error) {
		decision, diagnostic := cedar.Authorize(c.policies, c.entities, request)
		if len(diagnostic.Errors) > 0 {
			return false, fmt.Errorf("cedar: %s", diagnostic.Errors[0].Message)
		}
		return decision == cedar.Allow, nil
	}, nil
}
