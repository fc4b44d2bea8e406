// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// Prediction is a task instance that was seen and that no analysis covered. The next
// analysis will cover it.
type Prediction struct {
	Task       string            `json:"task"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// maxPredictions prevents users who can connect from filling the disk.
const maxPredictions = 1 << 20

// AddPredictions remembers instances. It ignores those that are known, and those beyond a
// million.
func (c *Catalog) AddPredictions(predictions ...Prediction) error {
	err := c.database.Batch(func(tx *bbolt.Tx) error {
		ledger := openLedger(tx)
		bucket := ledger.bucket(bucketPredictions)
		for _, prediction := range predictions {
			if prediction.Task == "" || strings.ContainsRune(prediction.Task, 0) {
				return fmt.Errorf("prediction of a task named %q", prediction.Task)
			}
			parameters, err := json.Marshal(prediction.Parameters)
			if err != nil {
				return err
			}
			key := append(append([]byte(prediction.Task), 0), parameters...)
			if bucket.Get(key) != nil || bucket.Sequence() >= maxPredictions {
				continue
			}
			// The sequence counts the keys: a count by walking through them would become
			// slower with each key.
			if err := errors.Join(bucket.SetSequence(bucket.Sequence()+1), bucket.Put(key, []byte{1})); err != nil {
				return err
			}
		}
		return ledger.close()
	})
	if err != nil {
		return fmt.Errorf("remember instances: %w", diskFull(err))
	}
	return nil
}

// Predictions lists the remembered instances, by task and parameters.
func (c *Catalog) Predictions() ([]Prediction, error) {
	var predictions []Prediction
	err := c.database.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketPredictions).ForEach(func(key, _ []byte) error {
			task, parameters, _ := bytes.Cut(key, []byte{0})
			prediction := Prediction{Task: string(task)}
			if err := json.Unmarshal(parameters, &prediction.Parameters); err != nil {
				return fmt.Errorf("read prediction %q: %w", key, err)
			}
			predictions = append(predictions, prediction)
			return nil
		})
	})
	return predictions, err
}
