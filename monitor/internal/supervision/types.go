// SPDX-License-Identifier: BSD-2-Clause

package supervision

// fromSupervisor has an empty record of each type that a supervisor sends.
var fromSupervisor = []Record{
	Started{}, Listener{}, Ended{}, Notification{}, AskBind{}, AskRecord{}, Events{}, Fenced{}, Counts{}, Compare{},
}

// Type implements [Record].
func (Settings) Type() Type { return TypeSettings }

// Type implements [Record].
func (Slot) Type() Type { return TypeSlot }

// Type implements [Record].
func (Begin) Type() Type { return TypeBegin }

// Type implements [Record].
func (Key) Type() Type { return TypeKey }

// Type implements [Record].
func (Regions) Type() Type { return TypeRegions }

// Type implements [Record].
func (Set) Type() Type { return TypeSet }

// Type implements [Record].
func (Forget) Type() Type { return TypeForget }

// Type implements [Record].
func (Mode) Type() Type { return TypeMode }

// Type implements [Record].
func (Fence) Type() Type { return TypeFence }

// Type implements [Record].
func (Terminate) Type() Type { return TypeTerminate }

// Type implements [Record].
func (End) Type() Type { return TypeEnd }

// Type implements [Record].
func (Bind) Type() Type { return TypeBind }

// Type implements [Record].
func (Relay) Type() Type { return TypeRelay }

// Type implements [Record].
func (Credits) Type() Type { return TypeCredits }

// Type implements [Record].
func (Store) Type() Type { return TypeStore }

// Type implements [Record].
func (Sealed) Type() Type { return TypeSealed }

// Type implements [Record].
func (Compared) Type() Type { return TypeCompared }

// Type implements [Record].
func (Started) Type() Type { return TypeStarted }

// Type implements [Record].
func (Listener) Type() Type { return TypeListener }

// Type implements [Record].
func (Ended) Type() Type { return TypeEnded }

// Type implements [Record].
func (Notification) Type() Type { return TypeNotification }

// Type implements [Record].
func (AskBind) Type() Type { return TypeAskBind }

// Type implements [Record].
func (AskRecord) Type() Type { return TypeAskRecord }

// Type implements [Record].
func (Events) Type() Type { return TypeEvents }

// Type implements [Record].
func (Fenced) Type() Type { return TypeFenced }

// Type implements [Record].
func (Counts) Type() Type { return TypeCounts }

// Type implements [Record].
func (Compare) Type() Type { return TypeCompare }
