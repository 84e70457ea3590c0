import { describe, expect, test } from 'vitest'
import { type ConnectionState, Deadlines } from './deadlines.ts'

const open = { keepAliveSeconds: 20, isPaused: false, isPartial: false, packetMsMax: 60_000 } as const

/** The second at which something is overdue, and what it is. */
function firstOverdue(deadlines: Deadlines, stateAt: (second: number) => Partial<ConnectionState>, until = 1_000) {
  for (let second = 1; second <= until; second += 1) {
    const overdue = deadlines.overdue({ ...open, now: second * 1_000, ...stateAt(second) })
    if (overdue !== undefined) return { second, overdue }
  }
  return undefined
}

describe('keep alive', () => {
  test('counts one and a half times from CONNECT, not from the connection', () => {
    const deadlines = new Deadlines(0)
    deadlines.opened(9_000)
    expect(firstOverdue(deadlines, () => ({}))).toEqual({ second: 40, overdue: 'silent' })
  })
  test('includes pauses of the server, with a different reason', () => {
    expect(firstOverdue(new Deadlines(0), () => ({ isPaused: true }))).toEqual({ second: 31, overdue: 'paused' })
  })
})

describe('a packet', () => {
  test('is not overdue for time in which the server did not read', () => {
    const deadlines = new Deadlines(0)
    const stateAt = (second: number) => {
      deadlines.received()
      return { isPartial: true, isPaused: second > 10 && second <= 500 }
    }
    expect(firstOverdue(deadlines, stateAt)).toEqual({ second: 562, overdue: 'packet' })
  })
})
