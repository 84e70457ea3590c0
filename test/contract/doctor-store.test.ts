/** `inlet doctor --store`: a copy store is tried from several processes, and no trace is left in it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { s3Errors } from '../support/s3/answers.ts'
import { doubleCredentials } from '../support/s3/double.ts'
import { storeWithoutRoles } from '../support/s3/target.ts'

const directory = mkdtempSync(join(tmpdir(), 'inlet-doctor-store-'))
afterAll(() => rmSync(directory, { recursive: true }))

type Finding = { readonly check: string; readonly status: string; readonly message: string; readonly next_step: string | null }

/** A store over HTTP, and the settings that name it. */
async function furnished() {
  const at = await storeWithoutRoles()
  const environment = {
    ...{ INLET_DATA_DIR: join(directory, 'nowhere'), INLET_COPY_S3_ENDPOINT: at.double.url },
    INLET_COPY_ACCESS_KEY_ID: doubleCredentials.accessKeyId,
    INLET_COPY_SECRET_ACCESS_KEY: doubleCredentials.secretAccessKey,
  }
  const theirs = { body: Buffer.from('theirs'), headers: {} }
  at.bucket.objects.set('in/let/check-0', theirs)
  const examine = async () => {
    const { code, out } = await runCli(['doctor', '--json', '--store', 's3://copies/in/let'], { environment })
    const findings: readonly Finding[] = JSON.parse(out)
    const about = (check: string) => findings.filter((finding) => finding.check === check)
    const safe = findings.flatMap(({ check, status }) => (check.startsWith('safe: ') ? [`${check.slice(6)}: ${status}`] : []))
    return { code, findings, about, safe }
  }
  const expectClean = () => {
    expect([...at.bucket.objects]).toEqual([['in/let/check-0', theirs]])
    expect([...at.bucket.uploads]).toEqual([])
  }
  return { ...at, environment, examine, expectClean }
}

test('an honest one is safe for everything, from several processes, and what others have there stays', async () => {
  const { examine, expectClean, double, ...at } = await furnished()
  await using _ = at
  const { code, safe, about } = await examine()
  expect([code, safe]).toEqual([
    0,
    ['two copies: ok', 'takeover by hand: ok', 'takeover by itself: ok', 'markers put once: ok', 'uploads in parts: ok'],
  ])
  expect(about('store')[0]).toMatchObject({ message: 's3://copies/in/let was tried from 5 processes' })
  expect(about('store').filter(({ status }) => status !== 'ok')).toEqual([])
  expectClean()
})

test('one that ignores conditions is not safe for a takeover by itself, and says what to do', async () => {
  const { examine, expectClean, double, ...at } = await furnished()
  await using _ = at
  double.heedsConditions = false
  const { code, safe, about } = await examine()
  expect([code, safe]).toEqual([
    1,
    ['two copies: ok', 'takeover by hand: ok', 'takeover by itself: fail', 'markers put once: fail', 'uploads in parts: ok'],
  ])
  expect(about('safe: takeover by itself')).toMatchObject([
    { message: expect.stringContaining('it replaced the object'), next_step: expect.stringContaining('--adopt-copy') },
  ])
  expect(about('store')).toContainEqual(
    expect.objectContaining({ status: 'warn', message: expect.stringMatching(/at once one is taken: 8 of 8 were taken/) }),
  )
  expectClean()
})

test('one that keeps abandoned uploads, compares no checksums and has a wrong clock', async () => {
  const { examine, double, ...at } = await furnished()
  await using _ = at
  Object.assign(double, { keepsAbandoned: true, aheadMs: 600_000 })
  double.ignoresChecksums = ['signature', 'sha256', 'crc32', 'crc32c']
  const { code, safe, about } = await examine()
  expect([code, safe.at(-1)]).toEqual([1, 'uploads in parts: fail'])
  expect(about('store').flatMap(({ status, message }) => (status === 'warn' ? [message] : []))).toEqual([
    'an abandoned upload leaves nothing: it is still listed among the uploads',
    expect.stringContaining('damaged content is refused: it stores content that differs'),
    'its clock is right: it is 600 s ahead of this machine',
  ])
})

test('one that is busy, or denies the key a request, is not called unsafe', async () => {
  const { examine, expectClean, double, role, ...at } = await furnished()
  await using _ = at
  role.denied.add('AbortMultipartUpload')
  double.fault = ({ operation, headers }) =>
    operation === 'PutObject' && headers['if-none-match'] === '*' ? s3Errors.slowDown : undefined
  const { code, safe, findings } = await examine()
  expect([code, safe]).toEqual([
    1,
    [
      'two copies: warn',
      'takeover by hand: warn',
      'takeover by itself: warn',
      'markers put once: warn',
      'uploads in parts: warn',
    ],
  ])
  for (const { check, status, message, next_step } of findings.slice(1))
    if (status !== 'ok')
      expect([check, message, next_step]).toEqual([
        check,
        expect.stringContaining('unknown: '),
        expect.stringContaining('try again'),
      ])
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s removes what was written', async (signal) => {
  const { environment, expectClean, double, ...at } = await furnished()
  await using _ = at
  const args = ['src/main.ts', 'doctor', '--store', 's3://copies/in/let']
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = text(child.stderr)
  double.fault = ({ operation }) => {
    if (operation === 'PutObject' && double.count('PutObject') === 30) child.kill(signal)
    return undefined
  }
  const [code] = await once(child, 'exit')
  expect([code, await said]).toEqual([1, expect.stringMatching(/interrupted$/m)])
  expect(double.count('PutObject')).toBeLessThan(40)
  expectClean()
})

test('one that is not reached says so', async () => {
  const { environment, ...at } = await furnished()
  await using _ = at
  const { code, out } = await runCli(['doctor', '--json', '--store', 's3://copies/inlet'], {
    environment: { ...environment, INLET_COPY_S3_ENDPOINT: 'http://127.0.0.1:1' },
  })
  expect([code, JSON.parse(out)]).toMatchObject([1, [{ status: 'fail', message: expect.stringContaining('ECONNREFUSED') }]])
})

test('a directory is left as it was, and none is made', async () => {
  const mount = join(directory, 'mount')
  mkdirSync(mount)
  writeFileSync(join(mount, 'theirs'), '')
  // Settings of the store in use do not matter.
  const environment = { INLET_DATA_DIR: mount, INLET_COPY_S3_ENDPOINT: 'http://127.0.0.1:1', INLET_COPY_URL: 's3://copies' }
  const { code, out } = await runCli(['doctor', '--store', `file://${mount}`], { environment })
  expect([code, out]).toEqual([0, expect.stringMatching(/^ok {2}safe: takeover by itself {2}yes$/m)])
  expect(readdirSync(mount)).toEqual(['theirs'])
  const aFile = await runCli(['doctor', '--store', `file://${mount}/theirs`], { environment })
  expect([aFile.code, aFile.out]).toEqual([1, expect.stringContaining('name a directory in which this user may write')])
  const missing = await runCli(['doctor', '--store', `file://${mount}/none`], { environment })
  expect([missing.code, missing.out]).toEqual([1, expect.stringContaining('mount its disk')])
  expect(readdirSync(mount)).toEqual(['theirs'])
})
