import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Compact } from '#model/compaction.ts'
import { Backfill, Job, JobDetail, JobsQuery, Redrive } from '#model/job.ts'
import { pageOf } from '#model/page.ts'
import type { Compactions } from '../../resources/compactions.ts'
import type { Jobs } from '../../resources/jobs.ts'
import { problem } from '../openapi/openapi.ts'
import { type AddOperation, Empty, resource } from './resource.ts'

const jobConflict = problem(
  'a job with this version is running or paused on the endpoint, or the account has too many unfinished jobs',
)
const jobRejected = problem('the view is not published, the account has no such endpoint, or the request is not valid')
const finished = problem('the job is finished')

export function jobRoutes(jobs: Jobs, compactions: Compactions): FastifyPluginCallbackZod {
  return resource('Jobs', (operation) => {
    operation('POST /views/:id/backfill', 'backfillView', 'admin', {
      summary: 'Run a published version over segments that were committed without it',
      body: Backfill,
      response: { 202: Job, 409: jobConflict, 422: jobRejected },
      run: (request) => jobs.backfill(request.principal, request.params.id, request.body),
    })

    operation('POST /views/:id/redrive', 'redriveView', 'admin', {
      summary: 'Run a published version over the rows that another version of the view rejected',
      body: Redrive,
      response: { 202: Job, 409: jobConflict, 422: jobRejected },
      run: (request) => jobs.redrive(request.principal, request.params.id, request.body),
    })

    operation('POST /endpoints/:id/compact', 'compactEndpoint', 'admin', {
      summary: 'Merge small Parquet files of closed hours or days, and remove those that were merged long enough ago',
      body: Compact,
      response: {
        202: Job,
        204: Empty.meta({ description: 'nothing to merge' }),
        409: problem('a compaction is running or paused on the endpoint'),
      },
      run: async (request, reply) => {
        const job = await compactions.start(request.principal, request.params.id, request.body)
        return job === undefined ? reply.code(204).send() : reply.code(202).send(job)
      },
    })
    addJobs(operation, jobs)
  })
}

function addJobs(operation: AddOperation, jobs: Jobs): void {
  operation('GET /jobs', 'listJobs', 'metrics', {
    summary: 'List backfills, re-drives and compactions, newest first',
    query: JobsQuery,
    response: { 200: pageOf(Job) },
    run: (request) => jobs.list(request.principal, request.query),
  })

  operation('GET /jobs/:id', 'getJob', 'metrics', {
    summary: 'Get a job with its progress',
    response: { 200: JobDetail },
    run: (request) => jobs.get(request.principal, request.params.id),
  })

  for (const { verb, status, summary } of transitions) {
    operation(`POST /jobs/:id/${verb}`, `${verb}Job`, 'admin', {
      summary,
      response: { 200: Job, 422: finished },
      run: (request) => jobs.setStatus(request.principal, request.params.id, status),
    })
  }
}

const transitions = [
  { verb: 'pause', status: 'paused', summary: 'Pause a job: segments in progress are finished, and no others are started' },
  { verb: 'resume', status: 'running', summary: 'Resume a job' },
  { verb: 'cancel', status: 'canceled', summary: 'Cancel a job: files it has already written stay' },
] as const
