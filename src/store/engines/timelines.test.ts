import { expect, test } from 'vitest'
import { KnownTimelines, type Standing, type TimelineMemory } from './timelines.ts'

const at = (timeline: number, generation = 0, system = 'one'): Standing => ({ system, timeline, generation })

function aMemory(kept: readonly Standing[] = []) {
  const written: (readonly Standing[])[] = []
  const memory: TimelineMemory = {
    read: async () => kept,
    async write(standings) {
      await new Promise((resolve) => setImmediate(resolve))
      written.push(standings)
    },
  }
  return { memory, written }
}

test('a server of an older timeline is refused, also by a process that starts later', async () => {
  const { memory, written } = aMemory()
  const known = new KnownTimelines(memory)
  await known.observe(at(1))
  await known.observe(at(2))
  expect(written.at(-1)).toEqual([at(2)])
  await expect(known.observe(at(1))).rejects.toThrow('timeline 1, and this installation has used timeline 2')
  const later = new KnownTimelines(aMemory([at(2)]).memory)
  await expect(later.observe(at(1))).rejects.toThrow('a primary from before a failover')
  await later.observe(at(2))
})

test('what an operator accepted counts more than the timeline', async () => {
  const known = new KnownTimelines(aMemory([at(3)]).memory)
  await known.observe(at(2, 5_000))
  await expect(known.observe(at(3))).rejects.toThrow('another one was accepted since')
  await known.observe(at(3, 5_000))
  // Both have the database that was accepted, so that is not the reason.
  await expect(known.observe(at(2, 5_000))).rejects.toThrow('a primary from before a failover')
  await expect(known.observe(at(2))).rejects.toThrow('another one was accepted since')
})

test('whoever observes a newer timeline waits until it is remembered, and users of an older one are told at once', async () => {
  const { memory, written } = aMemory([at(1)])
  const known = new KnownTimelines(memory)
  await known.observe(at(1))
  let isTold = false
  known.subscribe(() => {
    isTold = known.isOlder(at(1))
  })
  const both = Promise.all([known.observe(at(2)), known.observe(at(2)).then(() => expect(written).toEqual([[at(2)]]))])
  await both
  expect(isTold).toBe(true)
})

test('other systems are compared among themselves, and those seen last are remembered', async () => {
  const { memory, written } = aMemory([at(9, 0, 'other')])
  const known = new KnownTimelines(memory)
  await known.observe(at(1))
  for (let system = 0; system < 20; system += 1) await known.observe(at(1, 0, `system ${system}`))
  expect(written.at(-1)).toHaveLength(16)
  expect(written.at(-1)?.at(-1)).toEqual(at(1, 0, 'system 19'))
  expect(known.isOlder(undefined)).toBe(false)
})
