import { createLink } from '@tanstack/react-router'
import type { ComponentProps } from 'react'
import { tabClass } from '../design/tabs.tsx'

/** A tab of a `TabBar`. */
export const TabLink = createLink((props: ComponentProps<'a'>) => <a {...props} className={tabClass} />)
