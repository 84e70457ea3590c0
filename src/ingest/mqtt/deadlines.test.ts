import { describe, expect, test } from 'vitest'
import { Deadlines, type Look } from './deadlines.ts'

const open = { keepAliveSeconds: 20, isPaused: false, isPartial: false, packetMsMax: 60_000 } as const

/** The second at which the answer is no more undefined, with what it says. */
function firstLate(deadlines: Deadlines, look: (second: number) => Partial<Look>, until = 1_000) {
  for (let second = 1; second <= until; second += 1) {
    const late = deadlines.late({ ...open, now: second * 1_000, ...look(second) })
    if (late !== undefined) return { second, late }
  }
  return undefined
}

test('CONNECT has ten seconds, whatever comes meanwhile', () => {
  const deadlines = new Deadlines(0)
  const look = () => {
    deadlines.heard()
    return { keepAliveSeconds: undefined, isPartial: true }
  }
  expect(firstLate(deadlines, look)).toEqual({ second: 11, late: 'connect' })
})

describe('keep alive', () => {
  test('is one and a half times from the CONNECT, not from the connection', () => {
    const deadlines = new Deadlines(0)
    deadlines.opened(9_000)
    expect(firstLate(deadlines, () => ({}))).toEqual({ second: 40, late: 'silent' })
  })
  test('begins anew with what comes', () => {
    const deadlines = new Deadlines(0)
    const look = (second: number) => {
      if (second <= 100) deadlines.heard()
      return {}
    }
    expect(firstLate(deadlines, look)).toEqual({ second: 131, late: 'silent' })
  })
  test('counts a pause of ours as well, under another name', () => {
    expect(firstLate(new Deadlines(0), () => ({ isPaused: true }))).toEqual({ second: 31, late: 'unread' })
  })
})

describe('a packet', () => {
  test('that trickles in is late', () => {
    const deadlines = new Deadlines(0)
    const look = () => {
      deadlines.heard()
      return { isPartial: true }
    }
    expect(firstLate(deadlines, look)).toEqual({ second: 62, late: 'packet' })
  })
  test('after packet is not, though one of them is always partial', () => {
    const deadlines = new Deadlines(0)
    const look = () => {
      deadlines.heard()
      deadlines.took()
      return { isPartial: true }
    }
    expect(firstLate(deadlines, look)).toBeUndefined()
  })
  test('is not late for the time in which it wasn’t read', () => {
    const deadlines = new Deadlines(0)
    const look = (second: number) => {
      deadlines.heard()
      return { isPartial: true, isPaused: second > 10 && second <= 500 }
    }
    expect(firstLate(deadlines, look)).toEqual({ second: 562, late: 'packet' })
  })
})

test('answers are to be read within thirty seconds, all of them', () => {
  const deadlines = new Deadlines(0)
  const look = (second: number) => {
    deadlines.heard()
    if (second === 5 || second === 20 || second === 40) deadlines.unsent(second * 1_000)
    if (second === 30) deadlines.drained()
    return {}
  }
  expect(firstLate(deadlines, look)).toEqual({ second: 71, late: 'answers' })
})
