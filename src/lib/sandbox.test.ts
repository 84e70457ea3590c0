import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { GiB, MiB } from './bytes.ts'
import { Sandbox } from './sandbox.ts'

const sandbox = await Sandbox.probe()
const bounds = { memoryBytes: 512 * MiB, fileBytes: MiB }

/** Runs a script in the sandbox. Returns what it wrote, or how it ended. */
async function run(script: string): Promise<string> {
  const [file = '', ...args] = sandbox.confine(bounds)([process.execPath, '-e', script])
  try {
    return (await promisify(execFile)(file, args, { env: {} })).stdout.trim()
  } catch (error) {
    const { code, signal } = error as { readonly code?: number; readonly signal?: string }
    return `ended by ${signal ?? code}`
  }
}

const lacks = (provided: string) => sandbox.missing.some((missing) => missing.startsWith(provided))

describe.skipIf(process.platform !== 'linux')('a confined process', () => {
  test.skipIf(lacks('limits'))('cannot allocate more memory than it may', async () => {
    const hoard = 'const all = []; for (;;) all.push(Buffer.allocUnsafeSlow(64 * 2 ** 20))'
    expect(await run(`try { ${hoard} } catch (error) { console.log(error.message) }`)).toMatch(/allocat/)
    expect(await run('console.log(Buffer.alloc(64 * 2 ** 20, 1).length)')).toBe(String(64 * MiB))
  })

  test.skipIf(lacks('limits'))('cannot write a larger file than it may, nor a core dump', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-sandbox-'))
    const write = `require('fs').writeFileSync(${JSON.stringify(join(directory, 'file'))}, Buffer.alloc(2 * 2 ** 20))`
    expect(await run(`try { ${write} } catch (error) { console.log(error.code) }`)).toBe('EFBIG')
    expect(await run("console.log(require('fs').readFileSync('/proc/self/limits', 'utf8'))")).toMatch(/core file size +0 /)
    await rm(directory, { recursive: true })
  })

  test.skipIf(lacks('no network'))('has no network', async () => {
    expect(await run("console.log(Object.values(require('os').networkInterfaces()).flat().length)")).toBe('0')
  })

  test.skipIf(lacks('no privileges'))('gains no privileges', async () => {
    const status = await run("console.log(require('fs').readFileSync('/proc/self/status', 'utf8'))")
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
  })
})

const isRoot = process.getuid?.() === 0

test.skipIf(!isRoot || sandbox.missing.length > 0)('workers may run as another user', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-sandbox-'))
  const ids = 'console.log(process.getuid(), process.getgid(), process.getgroups().join())'
  const other = await sandbox.as({ uid: 65_534, gid: 65_533 })
  const as = async (script: string) => {
    const [file = '', ...args] = other.confine(bounds)([process.execPath, '-e', script])
    return (await promisify(execFile)(file, args, { env: {} })).stdout.trim()
  }
  expect(await as(ids)).toBe('65534 65533 65533')
  expect(await as(`try { require('fs').readdirSync('${directory}') } catch (error) { console.log(error.code) }`)).toBe('EACCES')
  await rm(directory, { recursive: true })
})

test('a user that workers cannot run as is an error for the operator', async () => {
  const refusing = async (program: string) => (program === 'setpriv' ? '/bin/false' : '/bin/true')
  await expect(sandbox.as({ uid: 1001, gid: 1001 }, refusing)).rejects.toThrow(
    /^INLET_WORKER_USER: workers cannot run as user 1001 \(/,
  )
})

test('a machine without the programs starts workers as they are, and says what they lack', async () => {
  const bare = await Sandbox.probe(async (program) => {
    throw new Error(`${program} is not installed`)
  })
  expect(bare.confine(bounds)(['node', 'worker.js'])).toEqual(['node', 'worker.js'])
  expect(bare.missing).toEqual([
    'limits of memory and file size (prlimit is not installed)',
    'no network (unshare is not installed)',
    'no privileges (setpriv is not installed)',
  ])
})

test('a limit that the operator set lower is kept: only root could raise it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-sandbox-'))
  const prlimit = join(directory, 'prlimit')
  await writeFile(prlimit, '#!/bin/sh\ncase $1 in --fsize) echo 4096;; --data) echo unlimited;; esac', { mode: 0o700 })
  const limited = await Sandbox.probe(async (program) => (program === 'prlimit' ? prlimit : '/bin/true'))
  expect(limited.confine(bounds)(['node'])).toEqual(
    expect.arrayContaining([`--data=${GiB + bounds.memoryBytes}`, '--fsize=4096']),
  )
  await rm(directory, { recursive: true })
})

test('a program that is not permitted is left out', async () => {
  const partial = await Sandbox.probe(async (program) => (program === 'unshare' ? '/bin/false' : '/bin/true'))
  expect(partial.confine(bounds)(['node'])).toEqual([
    ...['/bin/true', `--data=${GiB + bounds.memoryBytes}`, `--fsize=${bounds.fileBytes}`, '--core=0', '--'],
    ...['/bin/true', '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all,+dac_override', '--pdeathsig', 'KILL', '--'],
    'node',
  ])
  expect(partial.missing).toEqual([expect.stringMatching(/^no network \(/)])
})
