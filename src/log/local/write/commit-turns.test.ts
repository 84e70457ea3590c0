import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../../test/support/thorough.ts'
import { CommitTurns } from './commit-turns.ts'

/** Records in which order turns begin. */
class Turns {
  readonly begun: string[] = []
  readonly #turns: CommitTurns

  constructor(capacity: number) {
    this.#turns = new CommitTurns(capacity)
  }

  /** The owner of a log is what its name has before the first digit. */
  async begin(...logs: readonly string[]): Promise<void> {
    for (const log of logs) {
      const waiting = this.#turns.begin(ownerOf(log))
      if (waiting === undefined) this.begun.push(log)
      else void waiting.then(() => this.begun.push(log))
    }
    await Promise.resolve()
  }

  async end(log: string): Promise<void> {
    this.#turns.end(ownerOf(log))
    await Promise.resolve()
  }
}

const ownerOf = (log: string) => log.replace(/\d.*/, '')
const logsOf = (owner: string, count: number) => Array.from({ length: count }, (_, n) => `${owner}${n}`)

test('a free turn begins at once, without a promise', () => {
  const turns = new CommitTurns(2)
  expect([turns.begin('a'), turns.begin('a')]).toEqual([undefined, undefined])
  expect(turns.begin('b')).toBeInstanceOf(Promise)
})

test('logs of one owner begin in order', async () => {
  const turns = new Turns(2)
  await turns.begin('a0', 'a1', 'a2', 'a3')
  await turns.end('a1')
  await turns.end('a0')
  expect(turns.begun).toEqual(['a0', 'a1', 'a2', 'a3'])
})

test('the next turn goes to the owner with the fewest', async () => {
  const turns = new Turns(3)
  await turns.begin(...logsOf('a', 100), 'b0', 'b1', 'c0')
  expect(turns.begun).toEqual(['a0', 'a1', 'a2'])
  for (const log of ['a0', 'a1', 'a2']) await turns.end(log)
  expect(turns.begun.slice(3)).toEqual(['b0', 'c0', 'a3'])
  await turns.end('b0')
  expect(turns.begun.slice(6)).toEqual(['b1'])
})

test('between equals, the one that has waited the longest since its last turn is next, however long its logs have waited', async () => {
  const turns = new Turns(2)
  await turns.begin(...['a', 'b'].flatMap((owner) => [`${owner}0`]), 'a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'victim0')
  await turns.end('a0')
  expect(turns.begun.at(-1)).toBe('victim0')
  await turns.end('b0')
  await turns.end('victim0')
  expect(turns.begun.slice(3)).toEqual(['a1', 'b1'])
})

test('whoever has no turn gets one before any owner gets two, and no turn is free while a log waits', async () => {
  const steps = fc.array(fc.record({ owner: fc.constantFrom('a', 'b', 'c', 'd'), ends: fc.boolean(), pick: fc.nat() }), {
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), steps, async (capacity, all) => {
      const turns = new Turns(capacity)
      const waiting: string[] = []
      const running: string[] = []
      for (const [step, { owner, ends, pick }] of all.entries()) {
        const known = turns.begun.length
        if (ends && running.length > 0) await turns.end(running.splice(pick % running.length, 1)[0] ?? '')
        else {
          waiting.push(`${owner}${step}`)
          await turns.begin(`${owner}${step}`)
        }
        const turnsOf = (name: string) => running.filter((log) => ownerOf(log) === name).length
        for (const log of turns.begun.slice(known)) {
          const fewest = Math.min(...waiting.map((other) => turnsOf(ownerOf(other))))
          expect(turnsOf(ownerOf(log))).toBe(fewest)
          expect(waiting.find((other) => ownerOf(other) === ownerOf(log))).toBe(log)
          waiting.splice(waiting.indexOf(log), 1)
          running.push(log)
        }
        expect(running.length).toBeLessThanOrEqual(capacity)
        expect(waiting.length === 0 || running.length === capacity).toBe(true)
      }
    }),
    { numRuns: runs(100, 5_000) },
  )
})
