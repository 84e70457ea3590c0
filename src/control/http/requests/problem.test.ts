import fastify from 'fastify'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
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
  const clock = new ManualClock()
  handleErrors(app, { baseUrl: '', logger: pino({}, { write: (line: string) => void lines.push(line) }), clock })
  app.get('/', async () => {
    throw error
  })
  const { statusCode } = await app.inject('/')
  expect(statusCode).toBe(
    error instanceof AppError && error.code === 'validation_error' ? 422 : error instanceof AppError ? 503 : 500,
  )
  expect(lines).toHaveLength(isLogged ? 1 : 0)
})

test('logs an outage once in a while, however many requests fail', async () => {
  const lines: string[] = []
  const clock = new ManualClock()
  const app = fastify()
  handleErrors(app, { baseUrl: '', logger: pino({}, { write: (line: string) => void lines.push(line) }), clock })
  app.get('/', async () => {
    throw new AppError('unavailable', 'the database is away', { retryAfterSeconds: 1, cause: new Error('ECONNREFUSED') })
  })
  for (let request = 0; request < 20; request += 1) await app.inject('/')
  expect(lines).toHaveLength(1)
  clock.advance(60_000)
  await app.inject('/')
  expect(lines).toHaveLength(2)
})
