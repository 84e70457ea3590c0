import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli } from '../../../test/support/cli.ts'
import { readLines } from './lines.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-lines-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('lines keep their bytes, without blank lines and line breaks', async () => {
  const path = join(directory, 'events.ndjson')
  await writeFile(path, Buffer.from([0x7b, 0x7d, 0x0d, 0x0a, 0x0a, 0x20, 0x0a, 0xff, 0x00, 0x0a]))
  expect(await readLines(path)).toEqual(['{}', '\xff\0'])
})

test('the demo says in one sentence that its file is missing, a directory or empty', async () => {
  const missing = join(directory, 'no-such-file')
  const empty = join(directory, 'empty')
  await writeFile(empty, '\n')
  const run = (path: string) => runCli(['demo', '--file', path])
  expect(await run(missing)).toEqual({ code: 1, out: '', err: `there is no file ${missing}\n` })
  expect(await run(directory)).toEqual({ code: 1, out: '', err: `${directory} is not a file\n` })
  expect(await run(empty)).toEqual({
    code: 1,
    out: '',
    err: `${empty} is empty: the demo needs at least one line of JSON\n`,
  })
})
