import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cost, type Machine, rate } from './figures.ts'
import { gateLimits, judge, type Ratios, steadyRatios, toSentence } from './gate.ts'

const name = 'http-ingest: CPU'
const thisMachine: Machine = {
  cpu: 'Example CPU',
  cores: 2,
  memoryBytes: 2 ** 34,
  kernel: 'Linux 6',
  node: '26.0.0',
  commit: 'abc',
  date: '2026-11-23T00:00:00Z',
}
let folder = ''
let minute = 0

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inlet-gate-'))
  minute = 0
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Judges a run with a ratio a minute after the one before. `again` is what a repetition measures. */
async function run(ratio: number, again = ratio, machine: Partial<Machine> = {}) {
  const date = new Date(Date.UTC(2026, 10, 23, 0, minute++)).toISOString().slice(0, 19).concat('Z')
  const repeated: string[] = []
  const repeat = async (names: readonly string[]): Promise<Ratios> => {
    repeated.push(...names)
    return { [name]: again }
  }
  const verdict = await judge(folder, { ...thisMachine, ...machine, date }, { [name]: ratio }, repeat)
  return { ...verdict, repeated }
}

async function runs(...ratios: readonly number[]): Promise<void> {
  for (const ratio of ratios) await run(ratio)
}

describe('the gate', () => {
  test('fails a drop of 20 % below the median of earlier runs', async () => {
    await runs(0.9, 1.1, 1, 1.02, 0.98)
    const { drops, repeated } = await run(0.8)
    expect(repeated).toEqual([name])
    expect(drops).toEqual([{ name, ratio: 0.8, usual: 1, runs: 5 }])
    expect(drops.map(toSentence)).toEqual([`${name}: the ratio 0.80 is 20 % below 1.00, the median of 5 earlier runs`])
  })

  test('passes a drop of 10 %, without measuring again', async () => {
    await runs(0.9, 1.1, 1, 1.02, 0.98)
    expect(await run(0.9)).toMatchObject({ drops: [], repeated: [], uncompared: 0 })
  })

  test('passes a drop that a repetition does not confirm', async () => {
    await runs(1, 1, 1, 1, 1)
    expect(await run(0.5, 0.95)).toMatchObject({ drops: [], repeated: [name] })
  })

  test('only stores until there are five runs on machines of the same model', async () => {
    await runs(1, 1, 1, 1)
    await run(1, 1, { cpu: 'Another CPU' })
    await run(1, 1, { cores: 8 })
    expect(await run(0.1)).toMatchObject({ drops: [], uncompared: 1 })
    expect(readdirSync(folder)).toHaveLength(7)
  })

  test('does not get used to a drop that failed', async () => {
    await runs(1, 1, 1, 1, 1)
    for (let repetition = 0; repetition < 20; repetition += 1) expect((await run(0.8)).drops).toHaveLength(1)
  })

  test('gets used to slow changes: only the newest runs count', async () => {
    await runs(...Array.from({ length: gateLimits.runsMax }, () => 1))
    await runs(...Array.from({ length: gateLimits.runsMax }, () => 0.9))
    expect((await run(0.78)).drops).toEqual([])
    expect((await run(0.76)).drops).toHaveLength(1)
  })

  test('compares the ratios of steady figures', () => {
    const figures = [
      cost({ work: 'CPU', unit: 'µs', ours: 20, floor: 10, isSteady: true }),
      rate({ work: 'requests', unit: '/s', ours: 20, floor: 10, isSteady: true }),
      rate({ work: 'wall time', unit: '/s', ours: 20, floor: 10 }),
    ]
    const results = [{ benchmark: 'http-ingest', about: '', figures }]
    expect(steadyRatios(results)).toEqual({ 'http-ingest: CPU': 0.5, 'http-ingest: requests': 2 })
  })
})
