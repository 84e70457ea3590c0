/** The tutorial and the how-to pages, as a reader follows them. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Reader, testPage, withKey } from '../support/page.ts'

const root = resolve(import.meta.dirname, '../..')

test('a test follows each page', () => {
  const tests = execFileSync(
    'grep',
    ['--recursive', '--include=*.test.ts', '--only-matching', '--no-filename', 'how-to/[a-z0-9-]*\\.md', join(root, 'test')],
    { encoding: 'utf8' },
  )
  const followed = new Set(tests.split('\n'))
  expect(readdirSync(join(root, 'docs/how-to')).filter((name) => !followed.has(`how-to/${name}`))).toEqual([])
})

describe('pages', () => {
  testPage('tutorial.md', [], async () => {
    await using reader = new Reader()
    await reader.follow('tutorial.md', withKey(reader))
  })

  testPage('how-to/backup-and-restore.md', ['pgrep'], async () => {
    await using reader = new Reader()
    await reader.run('inlet start')
    await reader.run(withKey(reader)('echo ing_live_… | inlet login --key-file -'))
    await reader.run(`seq 100 | sed 's/.*/{"event":"n","amount":&}/' | inlet send default`)
    await reader.follow('how-to/backup-and-restore.md')
    await reader.run(`seq 50 | sed 's/.*/{"event":"n","amount":&}/' | inlet send default
until [ "$(inlet query 'SELECT count(*) FROM events' | tail -1)" = 150 ]; do sleep 1; done`)
  })

  testPage('how-to/upgrade.md', ['pgrep'], async () => {
    await using reader = new Reader()
    await reader.run('inlet start')
    await reader.follow('how-to/upgrade.md')
  })

  testPage('how-to/lost-database.md', ['pgrep'], async () => {
    await using reader = new Reader()
    await reader.run('inlet start')
    await reader.run(withKey(reader)('echo ing_live_… | inlet login --key-file -\ninlet backup backups/monday'))
    await reader.run(`echo '{"event":"n","amount":1}' | inlet send default\n${delivered(1)}`)
    await reader.follow('how-to/lost-database.md')
    expect(await reader.run('inlet commits list default --json | jq length')).toBe('1\n')
  })

  testPage('how-to/lost-bucket.md', [], async () => {
    await using reader = new Reader()
    await reader.run('inlet start')
    await reader.run(withKey(reader)('echo ing_live_… | inlet login --key-file -'))
    await reader.follow('how-to/lost-bucket.md')
    await reader.run(`echo '{"event":"n","amount":1}' | inlet send default\n${delivered(1)}`)
    expect(await reader.run('find data/buckets/new-lake/events -name "*.parquet" | wc -l')).toBe('2\n')
  })

  testPage('how-to/lost-node.md', ['pgrep'], async () => {
    await using reader = new Reader({
      environment: { INLET_CONTROL_URL: 'http://127.0.0.1:8082', INLET_OBJECT_STORE: 'directory' },
    })
    // Two machines that share the directory of buckets.
    const control = 'INLET_CONTROL_URL= INLET_DATA_DIR=control'
    const node = (name: string) => `mkdir -p ${name} control/buckets && ln -s ../control/buckets ${name}/buckets`
    await reader.run(`(${control} inlet control > control.log 2>&1 &)
timeout 60 bash -c 'until curl -sf http://127.0.0.1:8080/readyz; do sleep 0.1; done' > /dev/null
inlet login --key-file control/first-api-key
${node('node-a')}
${node('node-b')}
export INLET_JOIN_TOKEN=$(${control} inlet join-tokens create --name nodes --uses any --json | jq --raw-output .join_token)
(INLET_DATA_DIR=node-a inlet node > node-a.log 2>&1 &)
timeout 60 bash -c 'until curl -sf http://127.0.0.1:8081/readyz; do sleep 0.1; done' > /dev/null
echo '{"event":"n","amount":1}' | inlet send default
pkill --signal KILL --full 'main.ts (node|ingest|delivery)'`)
    await reader.follow('how-to/lost-node.md', (code) =>
      code
        .replaceAll('inlet nodes', `${control} inlet nodes`)
        .replace('inlet node --adopt /mnt/volume', 'INLET_DATA_DIR=node-b inlet node --adopt node-a'),
    )
    expect(await reader.run('inlet commits list default --json | jq length')).toBe('1\n')
    expect(await reader.run(`${control} inlet nodes list`)).toContain('There are no nodes')
  })

  testPage('how-to/mqtt-devices.md', ['openssl', 'mosquitto_pub'], async () => {
    await using reader = new Reader()
    await reader.follow('how-to/mqtt-devices.md', withKey(reader))
  })

  testPage('how-to/minio.md', ['aws', 'versitygw'], async () => {
    await using reader = new Reader()
    const keys = await startStore(reader)
    await reader.follow('how-to/minio.md', (code) => withKey(reader)(keys(code)))
  })

  testPage('how-to/r2.md', ['aws', 'versitygw'], async () => {
    await using reader = new Reader()
    const keys = await startStore(reader)
    await reader.run(
      keys(
        'AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_REGION=us-east-1 aws --endpoint-url http://127.0.0.1:9000 s3 mb s3://lake',
      ),
    )
    await reader.follow('how-to/r2.md', (code) =>
      withKey(reader)(keys(code))
        .replace('https://ACCOUNT_ID.r2.cloudflarestorage.com', 'http://127.0.0.1:9000')
        .replace('INLET_S3_REGION=auto', 'INLET_S3_REGION=us-east-1'),
    )
  })
})

/** Starts an S3 server without roles where the pages expect one. Returns what fills in its keys. */
async function startStore(reader: Reader): Promise<(code: string) => string> {
  const [id, secret] = [randomBytes(10).toString('hex'), randomBytes(20).toString('hex')]
  await reader.run(`mkdir ../store
ROOT_ACCESS_KEY=${id} ROOT_SECRET_KEY=${secret} versitygw --port 127.0.0.1:9000 --region us-east-1 posix ../store > ../store.log 2>&1 &
timeout 30 bash -c 'until curl --silent http://127.0.0.1:9000 > /dev/null; do sleep 0.1; done'`)
  return (code) =>
    code
      .replaceAll('AWS_ACCESS_KEY_ID=…', `AWS_ACCESS_KEY_ID=${id}`)
      .replaceAll('AWS_SECRET_ACCESS_KEY=…', `AWS_SECRET_ACCESS_KEY=${secret}`)
}

/** Waits until the first endpoint has so many commits. */
function delivered(commits: number): string {
  return `timeout 60 bash -c 'until [ "$(inlet commits list default --json | jq length)" = ${commits} ]; do sleep 0.2; done'`
}
