import fastify from 'fastify'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { handleErrors } from './problem.ts'

test.each([
  ['does not log back-pressure', new AppError('unavailable', 'busy', { retryAfterSeconds: 1 }), false],
  [
    'logs an unreachable database',
    new AppError('unavailable', 'away', { retryAfterSeconds: 1, cause: new Error('ECONNREFUSED') }),
    true,
  ],
  ['logs an unexpected error', new Error('bug'), true],
  ['does not log a client error', new AppError('validation_error', 'no'), false],
])('%s', async (_, error, isLogged) => {
  const lines: string[] = []
  const app = fastify()
  handleErrors(app, { baseUrl: '', logger: pino({}, { write: (line: string) => void lines.push(line) }) })
  app.get('/', async () => {
    throw error
  })
  const { statusCode } = await app.inject('/')
  expect(statusCode).toBe(
    error instanceof AppError && error.code === 'validation_error' ? 422 : error instanceof AppError ? 503 : 500,
  )
  expect(lines).toHaveLength(isLogged ? 1 : 0)
})
