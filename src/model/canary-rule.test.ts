import { expect, test } from 'vitest'
import {
  type CanaryRule,
  defaultCanaryRule,
  judgeByRule,
  readCanaryRule,
  SetCanaryRule,
  type VersionFigures,
} from './canary-rule.ts'

const figures = (more: Partial<VersionFigures>): VersionFigures => ({
  ...{ version: 1, processed: 10_000, accepted: 10_000, dlq: 0, failed: 0, columns: [] },
  ...more,
})
const rule = (more: Partial<CanaryRule> = {}): CanaryRule => ({ ...defaultCanaryRule, ...more })

test('a canary that does as well goes on', () => {
  const columns = [{ name: 'a', values: 90, nulls: 10 }]
  const canary = figures({ version: 2, dlq: 150, columns })
  expect(judgeByRule(rule(), canary, figures({ dlq: 60, columns }))).toBeUndefined()
  // Exactly as many points as are allowed.
  expect(judgeByRule(rule(), figures({ dlq: 200 }), figures({ dlq: 100 }))).toBeUndefined()
})

test('dead letters and failures above those of the other version break the rule', () => {
  expect(judgeByRule(rule(), figures({ dlq: 250 }), figures({ dlq: 100 }))).toBe(
    '2.5 % of its records became dead letters, and 1 % with version 1: the rule of the canary allows 1 percentage point more',
  )
  expect(judgeByRule(rule({ failed_pct: 2 }), figures({ failed: 10_000 }), figures({}))).toBe(
    '100 % of its records are of segments on which it failed, and 0 % with version 1: the rule of the canary allows 2 percentage points more',
  )
})

test('NULLs are judged by column, in columns that both have', () => {
  const before = [
    { name: 'a', values: 9_000, nulls: 1_000 },
    { name: 'b', values: 10_000, nulls: 0 },
  ]
  const after = (nulls: number) => [
    { name: 'new', values: 0, nulls: 10_000 },
    { name: 'b', values: 10_000 - nulls, nulls },
  ]
  expect(judgeByRule(rule(), figures({ columns: after(400) }), figures({ columns: before }))).toBeUndefined()
  expect(judgeByRule(rule(), figures({ columns: after(600) }), figures({ columns: before }))).toContain(
    '6 % of its rows have NULL in column "b", and 0 % with version 1',
  )
})

test('too few records are not judged, and a bound can be off', () => {
  expect(judgeByRule(rule(), figures({ processed: 999, dlq: 999 }), figures({}))).toBeUndefined()
  expect(judgeByRule(rule(), figures({ dlq: 999 }), figures({ processed: 999 }))).toBeUndefined()
  expect(judgeByRule(rule({ min_records: 10 }), figures({ processed: 10, dlq: 10 }), figures({}))).toContain('100 %')
  expect(judgeByRule(rule({ dead_letters_pct: null }), figures({ dlq: 9_999 }), figures({}))).toBeUndefined()
  expect(judgeByRule(rule({ dead_letters_pct: 0 }), figures({ dlq: 1 }), figures({}))).toContain('allows 0 percentage points')
})

test('a rule needs no fields', () => {
  expect(SetCanaryRule.parse({})).toEqual({
    min_records: 1_000,
    dead_letters_pct: 1,
    failed_pct: 1,
    nulls_pct: 5,
    window_minutes: 60,
  })
})

test('a rule from before there were windows has none', () => {
  const { window_minutes: _, ...before } = defaultCanaryRule
  expect(readCanaryRule(JSON.stringify(before))).toEqual({ ...before, window_minutes: null })
  expect(readCanaryRule(JSON.stringify(defaultCanaryRule))).toEqual(defaultCanaryRule)
})
