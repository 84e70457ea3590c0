/** Commands about the things of an account, over the management API. */
import { buildRouteMap } from '@stricli/core'
import { callCommand, listCommand } from './resource.ts'

const id = { title: 'ID', field: 'id' } as const
const name = { title: 'NAME', field: 'name' } as const
const status = { title: 'STATUS', field: 'status' } as const
const created = { title: 'CREATED', field: 'created_at' } as const
const fieldsHelp = (what: string, example: string) =>
  `${what} Fields come from a file, from --set, or both; their names are those of the API (docs/api.md). The fields endpoint, view and destination may have a name in place of an id.\n\nExample: ${example}`

export const endpointsCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list endpoints',
      operation: 'listEndpoints',
      noun: 'endpoints',
      filters: {
        status: { parameter: 'status', brief: 'only those with this status', placeholder: 'STATUS' },
        name: { parameter: 'name', brief: 'only those whose name has this text', placeholder: 'TEXT' },
      },
      columns: [
        name,
        status,
        { title: 'DESTINATION', field: 'destination_name' },
        { title: 'LAG', field: 'lag.undelivered_bytes', as: 'bytes' },
        id,
      ],
    }),
    show: callCommand({ brief: 'show an endpoint', operation: 'getEndpoint', targets: ['endpoint'], done: '' }),
    create: callCommand({
      brief: 'create an endpoint',
      help: fieldsHelp(
        'Creates an endpoint, in the only region that has nodes unless one is given.',
        'inlet endpoints create --set name=shop',
      ),
      operation: 'createEndpoint',
      body: true,
      needsRegion: true,
      done: 'Created.',
    }),
    change: callCommand({
      brief: 'change settings of an endpoint',
      help: fieldsHelp('Changes only the fields that are given.', 'inlet endpoints change shop --set segment_max_age_seconds=5'),
      operation: 'changeEndpoint',
      targets: ['endpoint'],
      body: true,
      done: 'Changed.',
    }),
    delete: callCommand({
      brief: 'delete an endpoint, once its data is delivered',
      operation: 'deleteEndpoint',
      targets: ['endpoint'],
      query: { force: 'also if data would be lost that is not delivered' },
      warning: 'the endpoint will be deleted; what it delivered stays in the bucket',
      done: 'Deleted.',
    }),
    pause: callCommand({ brief: 'refuse new data', operation: 'pauseEndpoint', targets: ['endpoint'], done: 'Paused.' }),
    resume: callCommand({ brief: 'accept data again', operation: 'resumeEndpoint', targets: ['endpoint'], done: 'Resumed.' }),
    compact: callCommand({
      brief: 'merge small files that were delivered',
      help: fieldsHelp(
        `Starts a job that merges small Parquet files into files of up to 256 MB: those of closed days, or of closed hours (period=hour), all of them or only those sealed from a time (from) or before one (to). Nodes do the work, so the service must run.
With --wait the command starts job after job until nothing is left to merge, prints the progress, and exits with 1 if some files could not be merged. A job goes on if you stop the command.
The merged files are in a folder of their own, compacted/. The old files stay in the bucket, unless the endpoint removes them (remove_after_hours): then programs that read whole folders miss the rows of removed files. docs/readers.md says what readers must know.`,
        'inlet endpoints compact shop --set period=hour --wait',
      ),
      operation: 'compactEndpoint',
      targets: ['endpoint'],
      body: true,
      startsJobs: true,
      done: 'There is nothing to merge.',
    }),
    'test-event': callCommand({
      brief: 'send one event, to see that it arrives',
      operation: 'sendTestEvent',
      targets: ['endpoint'],
      body: true,
      done: 'Sent.',
    }),
  },
  docs: { brief: 'manage endpoints' },
})

export const destinationsCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list destinations',
      operation: 'listDestinations',
      noun: 'destinations',
      columns: [
        name,
        status,
        { title: 'BUCKET', field: 'bucket' },
        { title: 'PREFIX', field: 'prefix' },
        { title: 'ENDPOINTS', field: 'ref_count' },
        id,
      ],
    }),
    show: callCommand({ brief: 'show a destination', operation: 'getDestination', targets: ['destination'], done: '' }),
    create: callCommand({
      brief: 'create a destination',
      help: fieldsHelp(
        'Creates a destination.',
        'inlet destinations create --set name=lake --set bucket=my-lake --set region=eu-central-1',
      ),
      operation: 'createDestination',
      body: true,
      done: 'Created.',
    }),
    change: callCommand({
      brief: 'change settings of a destination',
      help: fieldsHelp('Changes only the fields that are given.', 'inlet destinations change lake --set prefix=raw/'),
      operation: 'changeDestination',
      targets: ['destination'],
      body: true,
      done: 'Changed.',
    }),
    delete: callCommand({
      brief: 'delete a destination that no endpoint uses',
      operation: 'deleteDestination',
      targets: ['destination'],
      warning: 'the destination will be deleted; what is in the bucket stays',
      done: 'Deleted.',
    }),
    validate: callCommand({
      brief: 'check that a destination can be written to',
      operation: 'validateDestination',
      targets: ['destination'],
      done: '',
    }),
  },
  docs: { brief: 'manage destinations: buckets that data is delivered to' },
})

export const viewsCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list views',
      operation: 'listViews',
      query: { status: 'all' },
      noun: 'views',
      filters: {
        status: { parameter: 'status', brief: 'only draft, published or archived versions', placeholder: 'STATUS' },
        name: { parameter: 'name', brief: 'only the versions of this view', placeholder: 'NAME' },
      },
      columns: [name, { title: 'VERSION', field: 'version' }, status, { title: 'ENDPOINTS', field: 'usage_count' }, created, id],
    }),
    show: callCommand({ brief: 'show a view', operation: 'getView', targets: ['view'], done: '' }),
    create: callCommand({
      brief: 'create a view, as a draft',
      help: fieldsHelp('Creates a view.', 'inlet views create -f view.yaml'),
      operation: 'createView',
      body: true,
      done: 'Created.',
    }),
    change: callCommand({
      brief: 'change a view that is a draft, or its description',
      help: fieldsHelp(
        'Changes only the fields that are given.',
        'inlet views change orders --set "description=Orders as they arrive"',
      ),
      operation: 'changeView',
      targets: ['view'],
      body: true,
      done: 'Changed.',
    }),
    version: callCommand({
      brief: 'begin a new version of a view, as a draft',
      help: fieldsHelp('Creates a version.', 'inlet views version orders --set copy_from_version=1'),
      operation: 'createViewVersion',
      targets: ['view'],
      body: true,
      done: 'Created.',
    }),
    publish: callCommand({
      brief: 'publish the draft of a view',
      operation: 'publishView',
      targets: ['view'],
      done: 'Published.',
    }),
    archive: callCommand({
      brief: 'archive a view',
      operation: 'archiveView',
      targets: ['view'],
      warning: 'the view will be detached from every endpoint, and cannot be attached again',
      done: 'Archived.',
    }),
    delete: callCommand({
      brief: 'delete a view that no endpoint uses',
      operation: 'deleteView',
      targets: ['view'],
      warning: 'the view will be deleted; what it delivered stays in the bucket',
      done: 'Deleted.',
    }),
    preview: callCommand({
      brief: 'try a definition on records, without storing anything',
      help: fieldsHelp('Runs a definition over records.', 'inlet views preview -f preview.yaml'),
      operation: 'previewView',
      body: true,
      done: '',
    }),
    metrics: callCommand({
      brief: 'show what a view accepted and refused',
      operation: 'getViewMetrics',
      targets: ['view'],
      done: '',
    }),
    backfill: callCommand({
      brief: 'apply a view to what was delivered before',
      help: fieldsHelp('Starts a job.', 'inlet views backfill orders --set endpoint=shop --set from=2026-11-01T00:00:00Z'),
      operation: 'backfillView',
      targets: ['view'],
      body: true,
      done: 'Started.',
    }),
    redrive: callCommand({
      brief: 'apply a view to its dead letters again',
      help: fieldsHelp('Starts a job.', 'inlet views redrive orders --set endpoint=shop --set from_version=1'),
      operation: 'redriveView',
      targets: ['view'],
      body: true,
      done: 'Started.',
    }),
  },
  docs: { brief: 'manage views: typed columns from records' },
})

export const bindingsCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list the views of an endpoint',
      operation: 'listBindings',
      noun: 'bindings',
      targets: ['endpoint'],
      columns: [
        { title: 'VIEW', field: 'view_name' },
        { title: 'VERSION', field: 'view_version' },
        status,
        { title: 'REQUIRED', field: 'is_required' },
        { title: 'SINCE', field: 'activated_at' },
        id,
      ],
    }),
    attach: callCommand({
      brief: 'apply a view to the records of an endpoint',
      help: fieldsHelp('Attaches the published version of a view.', 'inlet bindings attach shop --set view=orders'),
      operation: 'attachView',
      targets: ['endpoint'],
      body: true,
      done: 'Attached.',
    }),
    detach: callCommand({
      brief: 'stop applying a view',
      operation: 'detachView',
      targets: ['endpoint', 'id'],
      warning: 'the view will get no more records of the endpoint',
      done: 'Detached.',
    }),
  },
  docs: { brief: 'manage which views an endpoint has' },
})

export const dlqCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list the latest dead letters of a view',
      operation: 'listDlqRecords',
      noun: 'dead letters',
      targets: ['view'],
      filters: {
        endpoint: { parameter: 'endpoint_id', names: 'endpoint', brief: 'only those of this endpoint', placeholder: 'ENDPOINT' },
        code: { parameter: 'error_code', brief: 'only those with this error', placeholder: 'CODE' },
      },
      columns: [
        { title: 'RECEIVED', field: 'ingested_at' },
        { title: 'ERROR', field: 'error_code' },
        { title: 'COLUMN', field: 'column' },
        { title: 'MESSAGE', field: 'message' },
      ],
    }),
    reasons: listCommand({
      brief: 'count dead letters of a view by reason',
      operation: 'listDlqReasons',
      noun: 'dead letters',
      targets: ['view'],
      filters: {
        endpoint: { parameter: 'endpoint_id', names: 'endpoint', brief: 'only those of this endpoint', placeholder: 'ENDPOINT' },
      },
      columns: [
        { title: 'ROWS', field: 'rows' },
        { title: 'ERROR', field: 'error_code' },
        { title: 'COLUMN', field: 'column' },
        { title: 'LAST', field: 'last_ingested_at' },
        { title: 'MESSAGE', field: 'message' },
      ],
    }),
    files: listCommand({
      brief: 'list the files with dead letters of a view',
      operation: 'listDlqFiles',
      tellsMissing: true,
      noun: 'files with dead letters',
      targets: ['view'],
      columns: [
        created,
        { title: 'ENDPOINT', field: 'endpoint_name' },
        { title: 'ROWS', field: 'rows' },
        { title: 'SIZE', field: 'bytes', as: 'bytes' },
        { title: 'RE-DRIVEN', field: 'redriven_at' },
        { title: 'KEY', field: 's3_key' },
      ],
    }),
  },
  docs: { brief: 'look at dead letters: records that a view could not take' },
})

export const jobsCommands = buildRouteMap({
  routes: {
    list: listCommand({
      brief: 'list backfills, redrives and compactions',
      operation: 'listJobs',
      noun: 'jobs',
      filters: { status: { parameter: 'status', brief: 'only those with this status', placeholder: 'STATUS' } },
      columns: [
        { title: 'KIND', field: 'kind' },
        status,
        { title: 'VIEW', field: 'view_name' },
        { title: 'VERSION', field: 'view_version' },
        { title: 'ENDPOINT', field: 'endpoint_name' },
        { title: 'ACCEPTED', field: 'counters.accepted' },
        { title: 'DEAD LETTERS', field: 'counters.dlq' },
        created,
        id,
      ],
    }),
    show: callCommand({ brief: 'show a job and its progress', operation: 'getJob', targets: ['id'], done: '' }),
    pause: callCommand({ brief: 'pause a job', operation: 'pauseJob', targets: ['id'], done: 'Paused.' }),
    resume: callCommand({ brief: 'go on with a job', operation: 'resumeJob', targets: ['id'], done: 'Resumed.' }),
    cancel: callCommand({
      brief: 'cancel a job; what it did stays',
      operation: 'cancelJob',
      targets: ['id'],
      done: 'Cancelled.',
    }),
  },
  docs: { brief: 'look at long work, and control it' },
})

export const commitsListCommand = listCommand({
  brief: 'list the latest commits of an endpoint',
  operation: 'listCommits',
  tellsMissing: true,
  noun: 'commits',
  targets: ['endpoint'],
  columns: [
    { title: 'UPLOADED', field: 'uploaded_at' },
    { title: 'SEQ', field: 'seq' },
    { title: 'RECORDS', field: 'records' },
    { title: 'SIZE', field: 'wal_bytes', as: 'bytes' },
    { title: 'FILES', field: 'artifacts', as: 'count' },
    id,
  ],
})

export const commitsFilesCommand = listCommand({
  brief: 'list the files of a commit',
  operation: 'listCommitFiles',
  noun: 'files',
  targets: ['endpoint', 'id'],
  columns: [
    { title: 'KIND', field: 'kind' },
    { title: 'SIZE', field: 'bytes', as: 'bytes' },
    { title: 'KEY', field: 'key' },
  ],
})
