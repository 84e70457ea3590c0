import { expect, test } from 'vitest'
import { columnsToAdd, notesOf } from './columns-to-add.ts'

const column = (name: string, path: string) => ({ name, path, type: 'VARCHAR' })
const suggested = { columns: [column('id', '$.id'), column('name', '$.name'), column('name_2', '$.a.name')] }

test('only paths that no column reads are added, under names that are free', () => {
  const definition = { columns: [column('key', '$.id'), column('NAME', '$.user.name')] }
  expect(columnsToAdd({ definition: suggested }, definition)).toEqual([
    column('name_2', '$.name'),
    column('name_2_2', '$.a.name'),
  ])
})

test('an array whose elements are rows is read', () => {
  const arrays = { columns: ['$.id', '$.orders', '$.orders_old'].map((path) => ({ ...column('a', path), type: 'JSON' })) }
  const paths = (expand: string) => columnsToAdd({ definition: arrays }, { columns: [], expand }).map(({ path }) => path)
  expect(paths('$.orders[*]')).toEqual(['$.id', '$.orders_old'])
  expect(paths('$.orders[*].items[*]')).toEqual(['$.id', '$.orders_old'])
})

test('without a definition all are added, without a suggestion none', () => {
  expect(columnsToAdd({ definition: suggested }, undefined)).toEqual(suggested.columns)
  expect(columnsToAdd({ definition: null }, undefined)).toEqual([])
})

test('a note belongs to the path of its column', () => {
  const column = (name: string) => ({ name, path: `$.${name}`, type: 'JSON', found: 1, nulls: 0, missing: 0 })
  const about = { sample_index: null, code: 'mixed_types' }
  const warnings = [
    { ...about, column: 'b', message: 'mixed' },
    { ...about, column: null, message: 'of no column' },
  ]
  expect([...notesOf({ columns: [column('a'), column('b')], warnings })]).toEqual([['$.b', 'mixed']])
})
