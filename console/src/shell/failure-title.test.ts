import { expect, test } from 'vitest'
import { ApiError, type Problem } from '../api/client.ts'
import { titleOf } from './failure-title.ts'

const failure = (error: string, status: number, title: string) =>
  new ApiError({ type: 'about:blank', title, status, error: error as Problem['error'], detail: '' })

test.each([
  ['a wrong input', failure('validation_error', 422, 'Unprocessable Content'), 'This needs a correction'],
  ['no response', failure('unavailable', 0, 'Failed to fetch'), 'No response'],
  ['an error of a newer release', failure('too_early', 425, 'Too Early'), 'Too Early'],
])('%s has a title for people', (_, error, title) => {
  expect(titleOf(error)).toBe(title)
})
