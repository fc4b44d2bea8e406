// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// The parts of a [FactIndex] are persistent: a change copies what it touches and shares the
// rest with the version before it. What a change has copied itself it may change in place.

// edit identifies a change, and owns what the change has copied.
type edit struct{ _ byte } // not empty: two of them must differ in their address

// slotsInPage limits what a changed element copies.
const slotsInPage = 128

// vector is a persistent list. Numbers of dropped elements are used again.
type vector[T any] struct {
	pages  []*page[T]
	owner  *edit // of pages
	length uint32
	free   uint32 // one more than the number of a free slot; 0 if there is none
}

type page[T any] struct {
	owner *edit
	slots [slotsInPage]slot[T]
}

type slot[T any] struct {
	item T
	free uint32 // in a free slot, the next one, as in vector
}

func (v *vector[T]) at(number uint32) *T {
	return &v.pages[number/slotsInPage].slots[number%slotsInPage].item
}

// slot returns a slot that e may change.
func (v *vector[T]) slot(e *edit, number uint32) *slot[T] {
	if v.owner != e {
		v.pages, v.owner = slices.Clone(v.pages), e
	}
	p := v.pages[number/slotsInPage]
	if p.owner != e {
		copied := *p
		copied.owner = e
		p = &copied
		v.pages[number/slotsInPage] = p
	}
	return &p.slots[number%slotsInPage]
}

func (v *vector[T]) set(e *edit, number uint32, item T) { v.slot(e, number).item = item }

// add stores an element and returns its number.
func (v *vector[T]) add(e *edit, item T) uint32 {
	if v.free != 0 {
		number := v.free - 1
		s := v.slot(e, number)
		v.free = s.free
		*s = slot[T]{item: item}
		return number
	}
	number := v.length
	if number%slotsInPage == 0 {
		if v.owner != e {
			v.pages, v.owner = slices.Clone(v.pages), e
		}
		v.pages = append(v.pages, &page[T]{owner: e})
	}
	v.length++
	v.set(e, number, item)
	return number
}

// drop frees an element's number.
func (v *vector[T]) drop(e *edit, number uint32) {
	*v.slot(e, number) = slot[T]{free: v.free}
	v.free = number + 1
}

// trie is a persistent map. The caller gives the hashes of keys.
type trie[K comparable, V sharing[V]] struct{ root *trieNode[K, V] }

// sharing is implemented by values that a copy must not change in place.
type sharing[V any] interface{ shared() V }

const (
	trieBits  = 4  // of the hash that one branch uses
	trieDepth = 15 // at which the hash has no more bits
	leafSize  = 8  // entries in one leaf, from which it becomes a branch
)

// trieNode has either children or entries.
type trieNode[K comparable, V sharing[V]] struct {
	owner    *edit
	children *[1 << trieBits]*trieNode[K, V]
	entries  []keyed[K, V]
}

type keyed[K comparable, V any] struct {
	key   K
	hash  uint64
	value V
}

// get returns the value of a key, not to be changed; nil if there is none.
func (t *trie[K, V]) get(hash uint64, key K) *V {
	b := t.root
	for at := hash; b != nil; at >>= trieBits {
		if b.children != nil {
			b = b.children[at&(1<<trieBits-1)]
			continue
		}
		for i := range b.entries {
			if b.entries[i].hash == hash && b.entries[i].key == key {
				return &b.entries[i].value
			}
		}
		return nil
	}
	return nil
}

// own returns a copy of a branch that e may change, or the branch if e owns it.
func (b *trieNode[K, V]) own(e *edit) *trieNode[K, V] {
	if b == nil {
		return &trieNode[K, V]{owner: e}
	}
	if b.owner == e {
		return b
	}
	copied := &trieNode[K, V]{owner: e, entries: slices.Clone(b.entries)}
	for i := range copied.entries {
		copied.entries[i].value = copied.entries[i].value.shared()
	}
	if b.children != nil {
		children := *b.children
		copied.children = &children
	}
	return copied
}

// leaf returns the leaf of a hash, which e may change, and its depth.
func (t *trie[K, V]) leaf(e *edit, hash uint64) (leaf *trieNode[K, V], depth int) {
	at := &t.root
	for {
		*at = (*at).own(e)
		if (*at).children == nil {
			return *at, depth
		}
		at = &(*at).children[hash>>(trieBits*depth)&(1<<trieBits-1)]
		depth++
	}
}

// put returns the value of a key, to be changed by e. It adds the key if it is missing.
func (t *trie[K, V]) put(e *edit, hash uint64, key K) *V {
	leaf, depth := t.leaf(e, hash)
	for i := range leaf.entries {
		if leaf.entries[i].hash == hash && leaf.entries[i].key == key {
			return &leaf.entries[i].value
		}
	}
	if len(leaf.entries) >= leafSize && depth < trieDepth {
		leaf.split(e, depth)
		return t.put(e, hash, key)
	}
	leaf.entries = append(leaf.entries, keyed[K, V]{key: key, hash: hash})
	return &leaf.entries[len(leaf.entries)-1].value
}

// split makes a branch of a leaf.
func (b *trieNode[K, V]) split(e *edit, depth int) {
	b.children = new([1 << trieBits]*trieNode[K, V])
	for _, one := range b.entries {
		at := &b.children[one.hash>>(trieBits*depth)&(1<<trieBits-1)]
		*at = (*at).own(e)
		(*at).entries = append((*at).entries, one)
	}
	b.entries = nil
}

// remove removes a key, if it is there.
func (t *trie[K, V]) remove(e *edit, hash uint64, key K) {
	if t.get(hash, key) == nil {
		return
	}
	leaf, _ := t.leaf(e, hash)
	leaf.entries = slices.DeleteFunc(leaf.entries,
		func(one keyed[K, V]) bool { return one.hash == hash && one.key == key })
}

// numbers is a sorted list of groups' numbers.
type numbers []uint32

// shared makes sure that a number appended later does not get into memory that is shared.
func (n numbers) shared() numbers { return n[:len(n):len(n)] }

func (n numbers) with(number uint32) numbers {
	if len(n) == 0 || n[len(n)-1] < number {
		return append(n, number)
	}
	at, found := slices.BinarySearch(n, number)
	if found {
		return n
	}
	return slices.Insert(n.shared(), at, number)
}

func (n numbers) without(number uint32) numbers {
	at, found := slices.BinarySearch(n, number)
	if !found {
		return n
	}
	return slices.Concat(n[:at], n[at+1:])
}
