import { z } from 'zod'
import { reportedCountMax } from './limits.ts'

/** A number of things, or of bytes, in the report of a node. */
export const ReportedCount = z.int().min(0).max(reportedCountMax)
