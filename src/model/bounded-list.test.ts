import { expect, test } from 'vitest'
import { z } from 'zod'
import { boundedList } from './bounded-list.ts'
import { parseFields } from './field-errors.ts'
import { bodyLimits, commitLimits, definitionLimits, reportedTextMax } from './limits.ts'
import { CommitBatch, Heartbeat } from './node-protocol.ts'
import { ViewQuality } from './view-quality.ts'

const list = boundedList(z.object({ a: z.int() }), 3)

test('a list is checked up to its first wrong entry', () => {
  expect(parseFields(list, [{ a: 1, b: 2 }, { a: 2 }])).toEqual({ value: [{ a: 1 }, { a: 2 }] })
  expect(parseFields(list, [{ a: 1 }, { a: 'x' }, {}]).errors?.map(({ path }) => path)).toEqual(['1.a'])
  expect(parseFields(list, Array(4).fill({ a: 'x' })).errors?.map(({ path }) => path)).toEqual([''])
})

test('a wrong entry in each list of a commit or a heartbeat costs no more than one', () => {
  const views = Array(100).fill({ quality: { columns: Array(100).fill({}) } })
  const { errors = [], omitted } = parseFields(CommitBatch, { commits: Array(100).fill({ views }) })
  expect(errors.length + (omitted ?? 0)).toBeLessThan(50)
  expect(errors.every(({ path }) => path.startsWith('commits.0.'))).toBe(true)
  const lags = parseFields(Heartbeat, { process: 'delivery', lag: Array(20_000).fill({}) })
  expect(lags.errors?.length).toBeLessThan(20)
})

test('lists and texts in a commit have bounds', () => {
  const column = { name: 'a', type: 'JSON', values: 1, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null }
  const quality = (columns: number, name = 'a') =>
    ViewQuality.safeParse({ columns: Array(columns).fill({ ...column, name }), sampled_records: 0, unmapped: [] }).success
  expect(quality(definitionLimits.columnsMax)).toBe(true)
  expect(quality(definitionLimits.columnsMax + 1)).toBe(false)
  expect(quality(1, 'a'.repeat(reportedTextMax + 1))).toBe(false)
  const views = Array(commitLimits.viewsMax + 1).fill({})
  const { errors = [] } = parseFields(CommitBatch, { commits: [{ views }] })
  expect(errors.find(({ path }) => path === 'commits.0.views')).toBeDefined()
  expect(bodyLimits.fieldsMax).toBeGreaterThan(2 * commitLimits.viewsMax)
})
