import { expect, test } from 'vitest'
import { operationName, operationNamed } from './operation-names.ts'

test.each(['createKey', 'signInByLink', 'joinAccount', 'changeEndpoint', 'backfillView'])(
  '%s is found by the words that stand for it',
  (operation) => {
    expect(operationNamed(operationName(operation))).toBe(operation)
    expect(operationNamed(` ${operationName(operation).toLowerCase()} `)).toBe(operation)
    expect(operationNamed(operation)).toBe(operation)
  },
)
