/** Commands about the things of an account, over the management API. */
import { buildRouteMap } from '@stricli/core'
import { callCommand, listCommand } from './resource.ts'

const fieldsHelp = (what: string, example: string) =>
  `${what} Fields come from a file, from --set, or both; their names are those of the API (docs/api.md). The fields endpoint, view and destination may have a name in place of an id.\n\nExample: ${example}`

export const endpointsCommands = buildRouteMap({
  routes: {
    list: listCommand('listEndpoints', 'list endpoints', {
      noun: 'endpoints',
      filters: {
        status: { parameter: 'status', brief: 'only those with this status', placeholder: 'STATUS' },
        name: { parameter: 'name', brief: 'only those whose name has this text', placeholder: 'TEXT' },
      },
      columns: {
        NAME: 'name',
        STATUS: 'status',
        DESTINATION: 'destination_name',
        LAG: ['lag.undelivered_bytes', 'bytes'],
        ID: 'id',
      },
    }),
    show: callCommand('getEndpoint', 'show an endpoint'),
    create: callCommand('createEndpoint', 'create an endpoint', {
      help: fieldsHelp(
        'Creates an endpoint, in the only region that has nodes unless one is given.',
        'inlet endpoints create --set name=shop',
      ),
      needsRegion: true,
      done: 'Created.',
    }),
    change: callCommand('changeEndpoint', 'change settings of an endpoint', {
      help: fieldsHelp('Changes only the fields that are given.', 'inlet endpoints change shop --set segment_max_age_seconds=5'),
      done: 'Changed.',
    }),
    delete: callCommand('deleteEndpoint', 'delete an endpoint, once its data is delivered', {
      query: { force: 'also if data would be lost that is not delivered' },
      warning: 'the endpoint will be deleted; what it delivered stays in the bucket',
      done: 'Deleted.',
    }),
    pause: callCommand('pauseEndpoint', 'refuse new data', { done: 'Paused.' }),
    resume: callCommand('resumeEndpoint', 'accept data again', { done: 'Resumed.' }),
    compact: callCommand('compactEndpoint', 'merge small files that were delivered', {
      help: fieldsHelp(
        `Starts a job that merges small Parquet files into files of up to 256 MB: those of closed days, or of closed hours (period=hour), all of them or only those sealed from a time (from) or before one (to). Nodes do the work, so the service must run.
With --wait the command starts job after job until nothing is left to merge, prints the progress, and exits with 1 if some files could not be merged. A job goes on if you stop the command.
The merged files are in a folder of their own, compacted/. The old files stay in the bucket, unless the endpoint removes them (remove_after_hours): then programs that read whole folders miss the rows of removed files. docs/readers.md says what readers must know.`,
        'inlet endpoints compact shop --set period=hour --wait',
      ),
      startsJobs: true,
      done: 'There is nothing to merge.',
    }),
    'test-event': callCommand('sendTestEvent', 'send one event, to see that it arrives', { done: 'Sent.' }),
  },
  docs: { brief: 'manage endpoints' },
})

export const destinationsCommands = buildRouteMap({
  routes: {
    list: listCommand('listDestinations', 'list destinations', {
      noun: 'destinations',
      columns: { NAME: 'name', STATUS: 'status', BUCKET: 'bucket', PREFIX: 'prefix', ENDPOINTS: 'ref_count', ID: 'id' },
    }),
    show: callCommand('getDestination', 'show a destination'),
    create: callCommand('createDestination', 'create a destination', {
      help: fieldsHelp(
        'Creates a destination.',
        'inlet destinations create --set name=lake --set bucket=my-lake --set region=eu-central-1',
      ),
      done: 'Created.',
    }),
    change: callCommand('changeDestination', 'change settings of a destination', {
      help: fieldsHelp('Changes only the fields that are given.', 'inlet destinations change lake --set prefix=raw/'),
      done: 'Changed.',
    }),
    delete: callCommand('deleteDestination', 'delete a destination that no endpoint uses', {
      warning: 'the destination will be deleted; what is in the bucket stays',
      done: 'Deleted.',
    }),
    validate: callCommand('validateDestination', 'check that a destination can be written to'),
  },
  docs: { brief: 'manage destinations: buckets that data is delivered to' },
})

export const viewsCommands = buildRouteMap({
  routes: {
    list: listCommand('listViews', 'list views', {
      query: { status: 'all' },
      noun: 'views',
      filters: {
        status: { parameter: 'status', brief: 'only draft, published or archived versions', placeholder: 'STATUS' },
        name: { parameter: 'name', brief: 'only the versions of this view', placeholder: 'NAME' },
      },
      columns: { NAME: 'name', VERSION: 'version', STATUS: 'status', ENDPOINTS: 'usage_count', CREATED: 'created_at', ID: 'id' },
    }),
    show: callCommand('getView', 'show a view'),
    create: callCommand('createView', 'create a view, as a draft', {
      help: fieldsHelp('Creates a view.', 'inlet views create -f view.yaml'),
      done: 'Created.',
    }),
    change: callCommand('changeView', 'change a view that is a draft, or its description', {
      help: fieldsHelp(
        'Changes only the fields that are given.',
        'inlet views change orders --set "description=Orders as they arrive"',
      ),
      done: 'Changed.',
    }),
    version: callCommand('createViewVersion', 'begin a new version of a view, as a draft', {
      help: fieldsHelp('Creates a version.', 'inlet views version orders --set copy_from_version=1'),
      done: 'Created.',
    }),
    publish: callCommand('publishView', 'publish the draft of a view', { done: 'Published.' }),
    archive: callCommand('archiveView', 'archive a view', {
      warning: 'the view will be detached from every endpoint, and cannot be attached again',
      done: 'Archived.',
    }),
    delete: callCommand('deleteView', 'delete a view that no endpoint uses', {
      warning: 'the view will be deleted; what it delivered stays in the bucket',
      done: 'Deleted.',
    }),
    preview: callCommand('previewView', 'try a definition on records, without storing anything', {
      help: fieldsHelp('Runs a definition over records.', 'inlet views preview -f preview.yaml'),
    }),
    compare: callCommand('compareView', 'compare a changed view with the published one, over records of the last day', {
      help: fieldsHelp(
        'Runs the draft, another version or a definition over stored records, beside the published version, and shows what differs. Reads a bounded sample of the newest raw Parquet; nothing is stored.',
        'inlet views compare orders --set version=3 --set endpoint=shop',
      ),
      print: async () => (await import('../setup/describe-comparison.ts')).describeComparison,
    }),
    metrics: callCommand('getViewMetrics', 'show what a view accepted and refused'),
    backfill: callCommand('backfillView', 'apply a view to what was delivered before', {
      help: fieldsHelp('Starts a job.', 'inlet views backfill orders --set endpoint=shop --set from=2026-11-01T00:00:00Z'),
      done: 'Started.',
    }),
    redrive: callCommand('redriveView', 'apply a view to its dead letters again', {
      help: fieldsHelp('Starts a job.', 'inlet views redrive orders --set endpoint=shop --set from_version=1'),
      done: 'Started.',
    }),
  },
  docs: { brief: 'manage views: typed columns from records' },
})

export const bindingsCommands = buildRouteMap({
  routes: {
    list: listCommand('listBindings', 'list the views of an endpoint', {
      noun: 'bindings',
      columns: {
        VIEW: 'view_name',
        VERSION: 'view_version',
        STATUS: 'status',
        REQUIRED: 'is_required',
        SINCE: 'activated_at',
        'CANARY FROM': 'canary_start_ts',
        'CANARY RULE': ['canary_rule', 'present'],
        STOPPED: 'stopped_reason',
        ID: 'id',
      },
    }),
    attach: callCommand('attachView', 'apply a view to the records of an endpoint', {
      help: fieldsHelp('Attaches the published version of a view.', 'inlet bindings attach shop --set view=orders'),
      done: 'Attached.',
    }),
    detach: callCommand('detachView', 'stop applying a view', {
      warning: 'the view will get no more records of the endpoint',
      done: 'Detached.',
    }),
  },
  docs: { brief: 'manage which views an endpoint has' },
})

export const shadowsCommands = buildRouteMap({
  routes: {
    list: listCommand('listShadows', 'list the shadows of an endpoint', {
      noun: 'shadows',
      columns: { VIEW: 'view_name', VERSION: 'view_version', SINCE: 'started_at', ID: 'id' },
    }),
    start: callCommand('startShadow', 'run a draft or a version on an endpoint, to be counted', {
      help: fieldsHelp(
        'Nodes run the definition on each segment from now on, and count its outcome. It writes no files. inlet views metrics shows the figures.',
        'inlet shadows start shop --set view=orders',
      ),
      takesDrafts: true,
      done: 'Started.',
    }),
    end: callCommand('endShadow', 'end a shadow; its figures stay until another one starts', { done: 'Ended.' }),
  },
  docs: { brief: 'manage definitions that run on an endpoint only to be counted' },
})

export const dlqCommands = buildRouteMap({
  routes: {
    list: listCommand('listDlqRecords', 'list the latest dead letters of a view', {
      noun: 'dead letters',
      filters: {
        endpoint: { parameter: 'endpoint_id', names: 'endpoint', brief: 'only those of this endpoint', placeholder: 'ENDPOINT' },
        code: { parameter: 'error_code', brief: 'only those with this error', placeholder: 'CODE' },
      },
      columns: { RECEIVED: 'ingested_at', ERROR: 'error_code', COLUMN: 'column', MESSAGE: 'message' },
    }),
    reasons: listCommand('listDlqReasons', 'count dead letters of a view by reason', {
      noun: 'dead letters',
      filters: {
        endpoint: { parameter: 'endpoint_id', names: 'endpoint', brief: 'only those of this endpoint', placeholder: 'ENDPOINT' },
      },
      columns: { ROWS: 'rows', ERROR: 'error_code', COLUMN: 'column', LAST: 'last_ingested_at', 'LATEST MESSAGE': 'message' },
    }),
    files: listCommand('listDlqFiles', 'list the files with dead letters of a view', {
      reportsMissing: true,
      noun: 'files with dead letters',
      columns: {
        CREATED: 'created_at',
        ENDPOINT: 'endpoint_name',
        ROWS: 'rows',
        SIZE: ['bytes', 'bytes'],
        'RE-DRIVEN': 'redriven_at',
        KEY: 's3_key',
      },
    }),
  },
  docs: { brief: 'look at dead letters: records that a view could not take' },
})

export const jobsCommands = buildRouteMap({
  routes: {
    list: listCommand('listJobs', 'list backfills, redrives and compactions', {
      noun: 'jobs',
      filters: { status: { parameter: 'status', brief: 'only those with this status', placeholder: 'STATUS' } },
      columns: {
        KIND: 'kind',
        STATUS: 'status',
        VIEW: 'view_name',
        VERSION: 'view_version',
        ENDPOINT: 'endpoint_name',
        ACCEPTED: 'counters.accepted',
        ROWS: 'counters.rows',
        'DEAD LETTERS': 'counters.dlq',
        CREATED: 'created_at',
        ID: 'id',
      },
    }),
    show: callCommand('getJob', 'show a job and its progress'),
    pause: callCommand('pauseJob', 'pause a job', { done: 'Paused.' }),
    resume: callCommand('resumeJob', 'go on with a job', { done: 'Resumed.' }),
    cancel: callCommand('cancelJob', 'cancel a job; what it did stays', { done: 'Cancelled.' }),
  },
  docs: { brief: 'look at long work, and control it' },
})

export const lossesCommands = buildRouteMap({
  routes: {
    list: listCommand('listLosses', 'list what was acknowledged and not delivered when nodes lost their place', {
      noun: 'losses',
      filters: {
        state: { parameter: 'state', brief: 'only open, recovered or confirmed ones', placeholder: 'STATE' },
        endpoint: { parameter: 'endpoint_id', names: 'endpoint', brief: 'only those of this endpoint', placeholder: 'ENDPOINT' },
      },
      columns: {
        RECORDED: 'recorded_at',
        STATE: 'state',
        CAUSE: 'cause',
        ENDPOINT: 'endpoint_name',
        NODE: ['node', 'named'],
        FROM: 'first_segment_seq',
        SEGMENTS: 'segments',
        RECORDS: 'records',
        SIZE: ['bytes', 'bytes'],
        'AS OF': 'reported_at',
        RECOVERED: 'recovered.records',
        SEARCHED: 'searched_at',
        ID: 'id',
        'IN DOUBT': 'search_problem',
      },
    }),
    confirm: callCommand('confirmLoss', 'accept a loss, so that the status of its endpoint no longer names it', {
      describe: async () => (await import('../resources/describe-loss.ts')).describeLoss,
      warning: 'the loss will be confirmed; if the disk comes back, its records are delivered all the same',
      done: 'Confirmed.',
    }),
  },
  docs: { brief: 'see what was lost with nodes, and confirm it' },
})

export const receiptsCommands = buildRouteMap({
  routes: {
    show: callCommand('getReceipt', 'show whether acknowledged records are delivered, waiting or lost', {
      help: 'The id is <node_id>-<segment_seq>, of the response of ingest.\n\nExample: inlet receipts show shop 4f8c1f0e-6a53-4c0e-9d3b-0000000000f1-42',
    }),
  },
  docs: { brief: 'follow what ingest acknowledged' },
})

export const commitsListCommand = listCommand('listCommits', 'list the latest commits of an endpoint', {
  reportsMissing: true,
  noun: 'commits',
  columns: {
    UPLOADED: 'uploaded_at',
    SEQ: 'seq',
    RECORDS: 'records',
    SIZE: ['wal_bytes', 'bytes'],
    FILES: ['artifacts', 'count'],
    ID: 'id',
  },
})

export const commitsFilesCommand = listCommand('listCommitFiles', 'list the files of a commit', {
  noun: 'files',
  columns: { KIND: 'kind', SIZE: ['bytes', 'bytes'], KEY: 'key' },
})
