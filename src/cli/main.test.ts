import { execFile } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const program = fileURLToPath(new URL('../main.ts', import.meta.url))

test('an old Node reads the entry file and names the version that is needed', async () => {
  // Old versions refuse TypeScript before they read it.
  expect(realpathSync(program)).toMatch(/\.js$/)
  const versions = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })'
  const run = promisify(execFile)(process.execPath, ['--import', `data:text/javascript,${versions}`, program, '--version'])
  await expect(run).rejects.toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringMatching(/^Inlet needs Node 24 or newer, and this is Node 20\.20\.2\. .*npm ci.*\n$/),
  })
})

describe('after an npm ci that did not finish', () => {
  let directory = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'inlet-unfinished-'))
    const root = fileURLToPath(new URL('../..', import.meta.url))
    for (const path of ['src', 'tools/check-node', 'package.json'])
      cpSync(join(root, path), join(directory, path), { recursive: true, verbatimSymlinks: true })
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  test.each(['start', 'demo', 'inlet'] as const)('npm run %s with the Node of the system says what to do', async (name) => {
    const bin = join(directory, 'bin')
    mkdirSync(bin, { recursive: true })
    const answers = 'case "$1" in --version) echo v20.20.2;; *) echo "node: bad option: $1" >&2; exit 9;; esac'
    writeFileSync(join(bin, 'node'), `#!/bin/sh\n${answers}\n`)
    chmodSync(join(bin, 'node'), 0o755)
    const env = { PATH: `${bin}:/usr/bin:/bin` }
    const { scripts } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
    const run = promisify(execFile)('sh', ['-c', scripts[name]], { cwd: directory, env })
    await expect(run).rejects.toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: 'Inlet needs the Node that npm ci installs in node_modules, and this is v20.20.2: run npm ci again\n',
    })
  })

  test('a missing package is named', async () => {
    const run = promisify(execFile)(process.execPath, [join(directory, 'src/main.ts'), '--version'], { cwd: directory })
    await expect(run).rejects.toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringMatching(/^Inlet is not installed completely: Cannot find package '.*npm ci`\.\n$/),
    })
  })
})
