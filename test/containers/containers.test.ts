/** Checks deploy/ with real containers: the image, the Compose files, the manifests. podman stands for Docker and a kubelet. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cloneTo, forgetContainers, prepareContainers, whyNoContainers } from '../support/containers.ts'
import { Reader } from '../support/page.ts'

const run = promisify(execFile)
const reason = whyNoContainers()

test.runIf(process.env['CI'])('CI runs containers', () => {
  expect(reason).toBeUndefined()
})

describe.skipIf(reason !== undefined)(`containers${reason === undefined ? '' : ` (${reason})`}`, () => {
  let directory: string
  let clone: string
  let environment: Readonly<Record<string, string>>

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'inlet-containers-'))
    clone = join(directory, 'inlet')
    cloneTo(clone)
    environment = prepareContainers(join(directory, 'containers'))
    // The shells of the tests have no network: there, a build finds its layers.
    // Mounts of podman end with a namespace of their own.
    await run('unshare', ['--mount', 'docker', 'build', '--quiet', '--file', 'deploy/Dockerfile', '--tag', 'inlet', '.'], {
      cwd: clone,
      env: { ...process.env, ...environment },
    })
  }, 600_000)

  afterAll(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }), 600_000)

  /** A shell in the clone. Its containers end with it. */
  async function openShell(): Promise<Reader> {
    forgetContainers(environment)
    const reader = new Reader({ environment })
    // Addresses that podman gave away are kept there.
    await reader.run(`mkdir -p /run/containers; mount -t tmpfs containers /run/containers; cd '${clone}'`)
    return reader
  }

  test('the image holds what runs, and is small', async () => {
    await using shell = await openShell()
    const within = (command: string) => shell.run(`docker run --rm --entrypoint /bin/sh inlet -c '${command}' 2> /dev/null`)
    expect(
      await within(
        'find / -xdev -path "*/inlet/src/*.ts" -not -name "*.d.ts" -o -name "*.test.js" -path "*/inlet/src/*" 2>/dev/null || true',
      ),
    ).toBe('')
    expect(await within('ls -d /build /root/.npm /root/.npmrc 2>/dev/null || true')).toBe('')
    expect(
      await within(
        'ls /opt/inlet/lib/node_modules/inlet/node_modules | grep -E "^(node-(linux|darwin)|typescript|vite)" || true',
      ),
    ).toBe('')
    const size = Number(await shell.run('docker image inspect --format "{{.Size}}" inlet')) / 1e6
    console.log(`the image has ${size.toFixed(0)} MB`)
    expect(size).toBeLessThan(700)
  })

  test('docs/how-to/docker.md', async () => {
    await using shell = await openShell()
    await shell.follow('how-to/docker.md')
  })

  test('the container is healthy, confined, and loses nothing when it is stopped and replaced', async () => {
    await using shell = await openShell()
    const ready = 'until curl -sf http://127.0.0.1:8081/readyz > /dev/null; do sleep 0.2; done'
    await shell.run(`export COMPOSE_FILE=deploy/compose.yaml; docker compose up --detach; ${ready}`)
    await shell.run('inlet() { docker compose exec inlet inlet "$@"; }; id=$(docker ps --quiet --filter name=inlet)')
    await shell.run('podman healthcheck run $id < /dev/null')
    expect(await shell.run('podman inspect --format "{{.State.Health.Status}}" $id')).toBe('healthy\n')

    expect(await shell.run('docker compose exec inlet id --user')).toBe('1500\n')
    const status = await shell.run('docker compose exec inlet cat /proc/1/status')
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
    for (const path of ['/opt/inlet/x', '/etc/x', '/x'])
      expect(await shell.run(`docker compose exec inlet sh -c 'touch ${path} 2>&1' || true`)).toMatch(
        /Read-only file system|Permission denied/,
      )
    expect(await shell.run('docker compose exec inlet cat /data/sign-in-link')).toMatch(/^http:\/\/\S+\n$/)

    await shell.run(`KEY=$(docker compose exec inlet cat /data/first-api-key)
      inlet login --key-file /data/first-api-key
      send() { for n in $(seq 1000); do curl -sf http://127.0.0.1:8081/v1/ingest -H "X-API-Key: $KEY" -H 'Content-Type: application/x-ndjson' -d "{\\"event\\":\\"reading\\",\\"amount\\":$n}" > /dev/null || break; echo $n >> acknowledged; done; }
      send & until [ -s acknowledged ]; do sleep 0.1; done
      time docker compose stop
      wait $!`)
    expect(await shell.run('podman inspect --format "{{.State.ExitCode}}" $id')).toBe('0\n')
    await shell.run(`docker compose down; docker compose up --detach; ${ready}`)
    const acknowledged = (await shell.run('cat acknowledged')).trim().split('\n')
    expect(acknowledged.length).toBeLessThan(1000)
    await shell.run(
      `until [ "$(inlet commits list default --json | jq 'map(.records) | add')" -ge ${acknowledged.length} ]; do sleep 0.2; done`,
    )
    const rows = (await shell.run("inlet query 'SELECT amount::INT AS n FROM events ORDER BY n'")).trim().split(/\s+/).slice(1)
    // The last request may have been stored, although its response was lost.
    expect(rows.slice(0, acknowledged.length)).toEqual(acknowledged)
    expect(rows.length - acknowledged.length).toBeLessThanOrEqual(1)
    await shell.run('docker compose down --volumes')
  })

  test.each(['one-machine', 'cluster'])('deploy/kubernetes/%s fits the schemas of Kubernetes', async (name) => {
    await using shell = await openShell()
    await shell.run(`kustomize build deploy/kubernetes/${name} > rendered-${name}.yaml`)
    const checked = await shell.run(`kubernetes-validate --strict rendered-${name}.yaml 2>&1`)
    expect(checked.match(/ passed for resource /g)).toHaveLength(Number(await shell.run(`grep -c ^kind: rendered-${name}.yaml`)))
  })

  test('the components of deploy/kubernetes add to the cluster what they say, and fit the schemas where there are any', async () => {
    await using shell = await openShell()
    await shell.run(`mkdir with; cat > with/kustomization.yaml <<'EOF'
kind: Kustomization
resources: [../deploy/kubernetes/cluster]
components: [../deploy/kubernetes/prometheus, ../deploy/kubernetes/ingress, ../deploy/kubernetes/cert-manager]
EOF
kustomize build with > with.yaml`)
    const rendered = await shell.run('cat with.yaml')
    const kinds = [...rendered.matchAll(/^kind: (\w+)$/gm)].map(([, kind = '']) => kind)
    const own = ['Certificate', 'Certificate', 'Issuer', 'Issuer', 'PodMonitor', 'PodMonitor']
    expect(kinds.filter((kind) => own.includes(kind)).toSorted()).toEqual(own)
    expect(rendered.match(/name: inlet-metrics$/gm)).toHaveLength(4)
    // The others are not kinds of Kubernetes itself.
    const known = rendered.split(/^---$/m).filter((each) => !own.some((kind) => each.includes(`kind: ${kind}\n`)))
    await shell.run(`cat > known.yaml <<'EOF'\n${known.join('---')}\nEOF`)
    const checked = await shell.run('kubernetes-validate --strict known.yaml 2>&1')
    expect(checked.match(/ passed for resource /g)).toHaveLength(kinds.length - own.length)
  })

  test('docs/how-to/kubernetes.md', async () => {
    await using shell = await openShell()
    // Services outside of the cluster.
    await shell.run(`podman network create --subnet 10.77.0.0/24 inlet
      podman run --detach --network inlet:alias=postgres.example.com --env POSTGRES_USER=inlet --env POSTGRES_PASSWORD=PASSWORD postgres:17
      podman run --detach --network inlet:alias=s3.example.com --env ROOT_ACCESS_KEY=ACCESS_KEY --env ROOT_SECRET_KEY=SECRET_KEY \
        --tmpfs /objects --entrypoint sh versity/versitygw:v1.8.0 -c 'mkdir /objects/lake; exec versitygw posix /objects'`)
    await shell.follow('how-to/kubernetes.md')
  })
})
