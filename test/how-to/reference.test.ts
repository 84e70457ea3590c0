/** The README and pages of reference, as a reader pastes their commands. Each response must be a success. */
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect } from 'vitest'
import { Reader, testPage, withKey } from '../support/page.ts'

const root = resolve(import.meta.dirname, '../..')

describe('reference', () => {
  testPage('../README.md', [], async () => {
    await using reader = new Reader()
    await reader.run(`${checkedCurl}\necho '{"event":"signup","amount":1}' > your-events.ndjson`)
    const fill = (code: string) => hideKeys(ofPackage(withKey(reader)(code)))
    await reader.follow('../README.md', fill, ['Start', 'Manage it'])
  })

  testPage('api.md', [], async () => {
    await using reader = await openSystem()
    await reader.follow('api.md', hideKeys)
    expect(await reader.run('api GET /v1/views/$VIEW/dlq-files | jq ".files[0].rows"')).toBe('1\n')
  })

  testPage('ingest.md', [], async () => {
    await using reader = await openSystem({ INLET_PUBLIC_KEYS: 'true' })
    await reader.follow('ingest.md', hideKeys)
    expect(await reader.run('api GET /v1/endpoints/$ENDPOINT | jq ".kept_headers[0]"')).toBe('"x-hub-signature-256"\n')
    expect(await reader.run('jq .public key.json')).toBe('true\n')
  })

  testPage('mqtt.md', ['mosquitto_pub'], async () => {
    await using reader = await openSystem({ INLET_MQTT_LISTEN: '127.0.0.1:1883' })
    await reader.follow('mqtt.md', undefined, ['Sending data over MQTT', 'Connect'])
    await reader.run(hasCommit)
  })

  testPage('query.md', [], async () => {
    await using reader = await openSystem()
    await reader.run(`${orders('event_type')}
inlet endpoints change "$ENDPOINT" --set name='Line 1' --set segment_max_age_seconds=1
inlet bindings attach 'Line 1' --set view=orders
seq 20 | sed 's/.*/{"event_type":"order"}/' | inlet send 'Line 1'
${hasCommit}`)
    await reader.follow('query.md')
    expect(await reader.run('wc -l < records.ndjson; cat orders.csv | tail -1')).toBe('20\norder\n')
  })

  testPage('client.md', ['python3', 'go'], async () => {
    await using reader = await openSystem({ GOCACHE: execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim() })
    await reader.run(`printf '{"event":"n"}\\n{"event":"m"}\\n' | tee app.log > events.ndjson
inlet endpoints change "$ENDPOINT" --set name='Line 1' --set segment_max_age_seconds=1
inlet destinations change local --set name=lake; unset INLET_URL INLET_API_KEY`)
    await reader.follow('client.md', (code) =>
      code
        .replace('inlet login https://inlet.example.com ', 'inlet login http://127.0.0.1:8080 --key-file key ')
        .replace('region=fra', 'region=loc')
        .replace('tail -F', 'cat')
        .replaceAll(' examples/', ` ${root}/examples/`),
    )
    await reader.run(
      `timeout 60 bash -c "until inlet commits list $ENDPOINT --json | jq --exit-status 'map(.records) | add == 8' > /dev/null; do sleep 0.2; done"`,
    )
  })

  testPage('operations.md', [], async () => {
    await using reader = await openSystem()
    const fill = (code: string) =>
      hideKeys(ofPackage(code))
        .replace(
          /^inlet accounts list .*$/m,
          `$&\nACCOUNT=$(inlet accounts list --json | jq --raw-output '.[] | select(.name == "acme").id')`,
        )
        // Nobody has signed in.
        .replace(/^inlet sign-in-link --email .*$/m, '')
    await reader.follow('operations.md', fill, [
      'Accounts',
      'People',
      'Quotas',
      'Segments that need a person',
      'Rebuilding commits',
    ])
  })
})

/** A reader with a running Inlet and what the first lines of docs/api.md define. Commands use the same address and key. */
async function openSystem(environment: Readonly<Record<string, string>> = {}): Promise<Reader> {
  const reader = new Reader({ environment })
  await reader.run(`${checkedCurl}\ninlet start`)
  await reader.run(withKey(reader)('KEY=ing_live_…; echo $KEY > key; export INLET_URL=http://127.0.0.1:8080 INLET_API_KEY=$KEY'))
  await reader.follow('api.md', undefined, ['The management API'])
  await reader.run(`ENDPOINT=$(api GET '/v1/endpoints?limit=1' | jq --raw-output '.items[0].id')`)
  return reader
}

/** Without it, the shell goes on after a response that is an error. */
const checkedCurl = 'curl() { case " $* " in *" -sf"*) command curl "$@" ;; *) command curl --fail-with-body "$@" ;; esac; }'

const hasCommit = `timeout 60 bash -c "until inlet commits list $ENDPOINT --json | jq --exit-status 'length > 0' > /dev/null; do sleep 0.2; done"`

const orders = (column: string) => `cat > orders.json <<'JSON'
{"name":"orders","definition":{"columns":[{"name":"${column}","type":"VARCHAR","path":"$.${column}"}]}}
JSON
inlet views create -f orders.json
inlet views publish orders`

/** Makes commands leave a new key in a file: a key must not be in the output of tests. */
function hideKeys(code: string): string {
  return code
    .replaceAll(/^(api POST \/v1\/keys .*?)( \| jq \.)?$/gm, '$1 > key.json')
    .replaceAll(/^(inlet (?:keys|accounts) create .*?)( +#.*)?$/gm, '$1 > created.txt')
    .replaceAll(/^(operator POST \/v1\/accounts -d .*)$/gm, '$1 > created.json')
}

/** The commands of a clone as those of a package. */
function ofPackage(code: string): string {
  return code
    .replace('npm ci && ', '')
    .replaceAll('npm start', 'inlet start')
    .replaceAll(/npm run demo( --)?/g, 'inlet demo')
    .replaceAll(/^inlet\(\) .*$/gm, '')
    .replaceAll(/npm run (--silent )?inlet --/g, 'inlet')
}
