/**
 * `kubectl` for tests without an API server: as much of it as docs/how-to/kubernetes.md uses. It renders with kustomize, keeps objects as
 * files, and runs each pod of a Deployment or a StatefulSet by `podman kube play`: with its security context, settings, volumes and
 * resources. Services are names in the network of the pods. It checks probes when a rollout is awaited. What it does not know is an error.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAllDocuments, stringify } from 'yaml'

type Container = {
  name: string
  image: string
  ports: { name: string; containerPort: number }[]
  env?: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[]
  envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[]
  resources: { limits: object }
  volumeMounts: { name: string; mountPath: string }[]
} & Record<string, unknown>
type Probe = { httpGet: { path: string; port: string } }
type Volume = {
  name: string
  secret?: { secretName: string; defaultMode: number }
  persistentVolumeClaim?: { claimName: string }
}
type PodSpec = {
  containers: [Container]
  terminationGracePeriodSeconds: number
  volumes: Volume[]
}
type KubeObject = {
  kind: string
  metadata: { name: string; labels?: Record<string, string> }
  data?: Record<string, string>
  spec: {
    replicas: number
    selector: Record<string, string>
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec }
    volumeClaimTemplates?: { metadata: { name: string }; spec: object }[]
    ports: { port: number; targetPort: string }[]
  }
}
type RunningPod = {
  readonly name: string
  readonly address: string
  readonly owner: string
  readonly spec: PodSpec
  readonly hash: string
}

const state = process.env['INLET_TEST_KUBERNETES'] ?? expectUnreachable('INLET_TEST_KUBERNETES is not set')
const network = 'inlet'
for (const folder of ['objects', 'pods']) mkdirSync(join(state, folder), { recursive: true })

const podman = (...args: readonly string[]) =>
  execFileSync('podman', args, { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] })
const parsed = (text: string): KubeObject[] => parseAllDocuments(text).map((document) => document.toJS())

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kustomize: { type: 'string' },
    timeout: { type: 'string' },
    replicas: { type: 'string' },
    namespace: { type: 'string' },
    current: { type: 'boolean' },
    stdin: { type: 'boolean' },
    'from-literal': { type: 'string', multiple: true },
    cert: { type: 'string' },
    key: { type: 'string' },
    for: { type: 'string' },
  },
  args: beforeCommand(process.argv.slice(2)),
})
const [verb = '', ...rest] = positionals
await run()

async function run(): Promise<void> {
  const [first = '', second = '', third = ''] = rest
  switch (verb) {
    case 'config':
      return
    case 'create':
      if (first === 'namespace') return createNetwork()
      if (first === 'secret') return createSecret(second, third)
      break
    case 'apply':
      for (const object of parsed(execFileSync('kustomize', ['build', options.kustomize ?? ''], { encoding: 'utf8' })))
        keep(object)
      return await reconcile()
    case 'rollout':
      if (first === 'status') return await waitForRollout(second)
      break
    case 'scale': {
      const set = find(first)
      keep({ ...set, spec: { ...set.spec, replicas: Number(options.replicas) } })
      return await reconcile()
    }
    case 'exec':
    case 'logs': {
      const pod = podOf(first)
      const container = `${pod.name}-${pod.spec.containers[0].name}`
      const args = verb === 'logs' ? ['logs', container] : ['exec', container, ...afterCommand()]
      process.exitCode = spawnSync('podman', args, { stdio: 'inherit' }).status ?? 1
      return
    }
    case 'get':
      if (first === 'pods')
        return console.log(
          runningPods()
            .map(({ name, address }) => `${name}  ${address}`)
            .join('\n'),
        )
      break
    case 'delete':
      if (first === 'pod') {
        stop(podOf(`pod/${second}`))
        return await reconcile()
      }
      if (first === 'pvc') return void podman('volume', 'rm', second)
      break
    case 'wait':
      // A pod that is scaled away has stopped when the command for it returns.
      if (runningPods().some(({ name }) => `pod/${name}` === first)) expectUnreachable(`${first} is still there`)
      return
    case 'port-forward':
      return forward(first, rest.slice(1))
    default:
  }
  expectUnreachable(`unknown command: ${process.argv.slice(2).join(' ')}`)
}

/** Stops pods that nothing describes any more, or describes differently, and starts those that are missing and have their secrets. */
async function reconcile(): Promise<void> {
  const wanted = objects()
    .filter(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment')
    .flatMap(podsOf)
  const isWanted = (pod: RunningPod) => wanted.some(({ name, hash }) => name === pod.name && hash === pod.hash)
  for (const pod of runningPods().toReversed()) if (!isWanted(pod)) stop(pod)
  for (const pod of wanted) if (!runningPods().some(({ name }) => name === pod.name) && hasSecrets(pod)) start(pod)
}

function podsOf(owner: KubeObject): RunningPod[] {
  return Array.from({ length: owner.spec.replicas }, (_, index) => {
    const name = `${owner.metadata.name}-${index}`
    const claims = (owner.spec.volumeClaimTemplates ?? []).map(({ metadata }) => ({
      name: metadata.name,
      persistentVolumeClaim: { claimName: `${metadata.name}-${name}` },
    }))
    const { spec } = owner.spec.template
    return {
      name,
      address: '',
      owner: `${owner.kind.toLowerCase()}/${owner.metadata.name}`,
      spec: { ...spec, volumes: [...spec.volumes, ...claims] },
      hash: JSON.stringify(owner.spec.template),
    }
  })
}

function start(described: RunningPod): void {
  const pod = { ...described, address: newAddress() }
  const [container] = pod.spec.containers
  const env = [...settingsOf(container), ...(container.env ?? [])].map(({ name, value, valueFrom }) => ({
    name,
    value: valueFrom?.fieldRef.fieldPath === 'status.podIP' ? pod.address : value,
  }))
  // podman would run probes within the container, by curl, and open ports of the host. Here both come from outside, as with Kubernetes.
  const {
    startupProbe: _,
    livenessProbe: __,
    readinessProbe: ___,
    lifecycle: ____,
    envFrom: _____,
    ports: ______,
    resources,
    ...played
  } = container
  const labels = find(pod.owner).spec.template.metadata.labels
  const services = objects().filter(
    ({ kind, spec }) => kind === 'Service' && Object.entries(spec.selector).every(([name, value]) => labels[name] === value),
  )
  const claims = pod.spec.volumes.flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined || volumeExists(persistentVolumeClaim.claimName)
      ? []
      : [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: persistentVolumeClaim.claimName },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
  )
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod.name, labels },
    spec: {
      ...pod.spec,
      containers: [
        { ...played, env, resources: { limits: resources.limits }, volumeMounts: played.volumeMounts.map(ownedBy(pod)) },
      ],
      volumes: pod.spec.volumes.map(withFiles).map(ownedBy(pod)),
    },
  }
  const file = join(state, 'pods', `${pod.name}.yaml`)
  writeFileSync(file, [...claims, manifest].map((each) => stringify(each)).join('---\n'))
  const aliases = services.map(({ metadata }) => `alias=${metadata.name}.${network}.svc`)
  podman('kube', 'play', '--quiet', '--network', [`${network}:ip=${pod.address}`, ...aliases].join(','), file)
  writeFileSync(join(state, 'pods', `${pod.name}.json`), JSON.stringify(pod))
}

/** podman makes a volume of each emptyDir, and pods whose emptyDirs have one name would share it. */
function ownedBy(pod: RunningPod): <T extends { name: string }>(volume: T) => T {
  return (volume) => ({ ...volume, name: `${pod.name}-${volume.name}` })
}

/** podman 4 does not give a stopped pod's address to another one. */
function newAddress(): string {
  const file = join(state, 'addresses')
  const count = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 10
  writeFileSync(file, String(count + 1))
  return `10.77.0.${count + 1}`
}

function volumeExists(name: string): boolean {
  return spawnSync('podman', ['volume', 'exists', name]).status === 0
}

/** podman reads Secrets only of its own. */
function settingsOf({ envFrom = [] }: Container): { name: string; value: string; valueFrom?: undefined }[] {
  return envFrom.flatMap(({ configMapRef, secretRef }) => {
    const data = configMapRef === undefined ? secretData(secretRef?.name ?? '') : find(`configmap/${configMapRef.name}`).data
    return Object.entries(data ?? {}).map(([name, value]) => ({ name, value }))
  })
}

function withFiles(volume: Volume): Volume & { hostPath?: object } {
  if (volume.secret === undefined) return volume
  const path = join(state, 'files', volume.secret.secretName)
  mkdirSync(path, { recursive: true })
  for (const [name, value] of Object.entries(secretData(volume.secret.secretName))) {
    writeFileSync(join(path, name), value, { mode: volume.secret.defaultMode })
    chownSync(join(path, name), 0, 1500)
  }
  return { name: volume.name, hostPath: { path, type: 'Directory' } }
}

function secretData(name: string): Record<string, string> {
  const entries = Object.entries(find(`secret/${name}`).data ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
}

function stop({ name, spec }: RunningPod): void {
  podman('pod', 'stop', '--time', String(spec.terminationGracePeriodSeconds), name)
  podman('pod', 'rm', name)
  rmSync(join(state, 'pods', `${name}.json`))
}

/** A test may have made it for what the pods need. */
function createNetwork(): void {
  if (spawnSync('podman', ['network', 'exists', network]).status !== 0)
    podman('network', 'create', '--subnet', '10.77.0.0/24', network)
}

async function waitForRollout(owner: string): Promise<void> {
  await reconcile()
  const pods = runningPods().filter((pod) => pod.owner === owner)
  if (pods.length !== podsOf(find(owner)).length) expectUnreachable(`${owner} waits for a Secret`)
  const deadline = performance.now() + 60_000
  for (const { name, address, spec } of pods) {
    const [container] = spec.containers
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = (container[probe] as Probe).httpGet
      const number = container.ports.find((each) => each.name === port)?.containerPort
      while (
        !(await fetch(`http://${address}:${number}${path}`).then(
          ({ ok }) => ok,
          () => false,
        ))
      ) {
        if (performance.now() > deadline) expectUnreachable(`${probe} of ${name} fails`)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    console.log(`${name} is ready`)
  }
}

function createSecret(type: string, name: string): void {
  const data =
    type === 'tls'
      ? { 'tls.crt': readFileSync(options.cert ?? '', 'utf8'), 'tls.key': readFileSync(options.key ?? '', 'utf8') }
      : Object.fromEntries(
          (options['from-literal'] ?? []).map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
        )
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
  }
  keep(secret as unknown as KubeObject)
}

function hasSecrets({ spec }: RunningPod): boolean {
  const names = spec.containers[0].envFrom?.flatMap(({ secretRef }) => (secretRef === undefined ? [] : [secretRef.name])) ?? []
  return names.every((name) => existsSync(join(state, 'objects', `secret.${name}.json`)))
}

function forward(service: string, pairs: readonly string[]): void {
  const target = find(service)
  for (const ports of pairs) {
    const [local, port = local] = ports.split(':').map(Number)
    const { targetPort } =
      target.spec.ports.find((each) => each.port === port) ?? expectUnreachable(`${service} has no port ${port}`)
    createServer((client) => {
      const pod = runningPods().find(({ owner }) =>
        Object.entries(target.spec.selector).every(([name, value]) => find(owner).spec.template.metadata.labels[name] === value),
      )
      const number = pod?.spec.containers[0].ports.find(({ name }) => name === targetPort)?.containerPort ?? 0
      const upstream = connect(number, pod?.address ?? '')
      client.pipe(upstream).pipe(client)
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        one.on('error', () => other.destroy())
    }).listen(local, '127.0.0.1')
  }
}

function objects(): KubeObject[] {
  return readdirSync(join(state, 'objects'))
    .toSorted()
    .map((name) => JSON.parse(readFileSync(join(state, 'objects', name), 'utf8')))
}

function keep(object: KubeObject): void {
  writeFileSync(join(state, 'objects', `${object.kind.toLowerCase()}.${object.metadata.name}.json`), JSON.stringify(object))
}

function find(name: string): KubeObject {
  const file = join(state, 'objects', `${name.replace('/', '.')}.json`)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : expectUnreachable(`${name} not found`)
}

function runningPods(): RunningPod[] {
  const names = readdirSync(join(state, 'pods')).filter((name) => name.endsWith('.json'))
  return names.toSorted().map((name) => JSON.parse(readFileSync(join(state, 'pods', name), 'utf8')))
}

/** `NAME`, `pod/NAME`, or the first pod of `deployment/NAME`. */
function podOf(given: string): RunningPod {
  const pod = runningPods().find(({ name, owner }) => name === given.replace(/^pod\//, '') || owner === given)
  return pod ?? expectUnreachable(`no pod of ${given}`)
}

function beforeCommand(args: readonly string[]): string[] {
  return args.includes('--') ? args.slice(0, args.indexOf('--')) : [...args]
}

function afterCommand(): string[] {
  return process.argv.slice(process.argv.indexOf('--') + 1)
}

function expectUnreachable(message: string): never {
  console.error(`kubectl of the tests: ${message}`)
  process.exit(1)
}
