import { expect, test } from 'vitest'
import { type DatabasePosition, findRollback } from './database-position.ts'

const kept: DatabasePosition = {
  database: '4f8c1f0e-6a53-4c0e-9d3b-0000000000d1',
  generation: 0,
  epoch: 8,
  version: 'eight',
}
const other = '4f8c1f0e-6a53-4c0e-9d3b-0000000000d2'

test.each<[string, Partial<DatabasePosition>, { isRefusing?: boolean; generation?: number }, boolean]>([
  ['the same state', {}, {}, true],
  ['a later epoch', { epoch: 9, version: 'nine' }, {}, true],
  ['an earlier epoch', { epoch: 2, version: 'two' }, {}, false],
  ['another state of the same epoch', { version: 'other' }, {}, false],
  ['a later epoch after a refusal: the older copy has changed since', { epoch: 9, version: 'nine' }, { isRefusing: true }, false],
  ['the same state after a refusal: the right database is back', {}, { isRefusing: true }, true],
  ['an earlier epoch of a later generation', { generation: 5, epoch: 2, version: 'two' }, { isRefusing: true }, true],
  ['a copy from before a restore', { epoch: 20, version: 'twenty' }, { generation: 5 }, false],
  ['another database', { database: other, epoch: 9 }, {}, false],
  ['another database that was accepted', { database: other, generation: 5, epoch: 1 }, {}, true],
  ['another database that was accepted before this one', { database: other, generation: 5 }, { generation: 6 }, false],
])('%s', (_name, change, { isRefusing = false, generation = 0 }, follows) => {
  const reason = findRollback({ position: { ...kept, generation }, isRefusing }, { ...kept, ...change })
  expect(reason === undefined).toBe(follows)
})
