import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { readOnly, timelineFile } from './timeline-file.ts'

function aFile() {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-timelines-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'database-timelines.json')
  const lines: string[] = []
  const logger = createLogger('test', 'info', undefined, { write: (line: string) => void lines.push(line) })
  return { directory, path, lines, memory: timelineFile(systemFiles, path, logger) }
}

const standing = { system: '7713242377704578002', timeline: 3, generation: 1_764_000_000_000 }

test('what is written is read again, and nothing before that', async () => {
  const { memory } = aFile()
  expect(await memory.read()).toEqual([])
  await memory.write([standing])
  expect(await memory.read()).toEqual([standing])
  await readOnly(memory).write([])
  expect(await readOnly(memory).read()).toEqual([standing])
})

test('a damaged file is an empty one, and the log says so', async () => {
  const { memory, path, lines } = aFile()
  await memory.write([standing])
  writeFileSync(path, readFileSync(path, 'utf8').replace('"timeline":3', '"timeline":2'))
  expect(await memory.read()).toEqual([])
  expect(lines.join()).toMatch(/known timelines of the database unreadable/)
  await memory.write([standing])
  expect(await memory.read()).toEqual([standing])
})

test('a disk that cannot be written to stops nothing', async () => {
  const { memory, directory, lines } = aFile()
  rmSync(directory, { recursive: true })
  writeFileSync(directory, 'in the way')
  await memory.write([standing])
  expect(lines.join()).toMatch(/timeline of the database not remembered/)
})
