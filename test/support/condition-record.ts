import type { Column } from '#model/definition.ts'

/** Columns for tests of conditions, and a record that has a value for each. */
export const columns: readonly Column[] = [
  { name: 'n', type: 'DOUBLE', path: '$.n' },
  { name: 'i', type: 'BIGINT', path: '$.i' },
  { name: 's', type: 'VARCHAR', path: '$.s' },
  { name: 't', type: 'TIMESTAMP', path: '$.t' },
  { name: 'l', type: 'VARCHAR[]', path: '$.l' },
]
export const record = JSON.stringify({ n: -2.5, i: 7, s: ' Abc ', t: '2026-11-20T08:15:30.5Z', l: ['a', 'b'] })
