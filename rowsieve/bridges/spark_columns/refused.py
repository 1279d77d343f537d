"""The classes of Spark's expressions that are nothing here, by the reason why.

A test holds this list, with the rows of `table`, against the functions of the installed Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

REFUSED: Mapping[str, Sequence[str]] = {
    reason: names.split()
    for reason, names in {
        "JSON in text: cut by other rules than ours": """
            GetJsonObject JsonObjectKeys JsonToStructs JsonTuple LengthOfJsonArray SchemaOfJson
            StructsToJson
        """,
        "URLs are not taken apart here": """
            ParseUrl TryParseUrl TryUrlDecode UrlDecode UrlEncode
        """,
        "a filter over one table holds no query": """
            Exists InSubquery ListQuery OuterReference ScalarSubquery
        """,
        "bits have no counterpart here": """
            BitwiseCount BitwiseGet BitwiseNot ShiftRightUnsigned
        """,
        "code of users is not read": """
            CallMethodViaReflection PythonUDF ScalaUDAF ScalaUDF TryReflect UnwrapUDT
        """,
        "functions of functions have no counterpart here": """
            ArrayAggregate ArrayExists ArrayFilter ArrayForAll ArraySort ArrayTransform
            LambdaFunction MapFilter MapZipWith NamedLambdaVariable TransformKeys
            TransformValues ZipWith
        """,
        "geography has no counterpart here": """
            ST_AsBinary ST_GeogFromWKB ST_GeomFromWKB ST_SetSrid ST_Srid
        """,
        "hashes have no counterpart here": """
            Crc32 Murmur3Hash Sha1 XxHash64
        """,
        "intervals are no values of columns here": """
            DateAddInterval DivideDTInterval DivideYMInterval ExtractANSIIntervalDays
            MakeDTInterval MakeInterval MakeYMInterval MultiplyDTInterval MultiplyYMInterval
            SubtractDates SubtractTimestamps TryMakeInterval
        """,
        "it depends on more than the row": """
            AesDecrypt AesEncrypt AssertTrue BitmapBitPosition BitmapBucketNumber BitmapCount
            CurrentCatalog CurrentDatabase CurrentPath CurrentUser Hmac InputFileBlockLength
            InputFileBlockStart InputFileName MonotonicallyIncreasingID RaiseError
            SparkPartitionID SparkVersion TryAesDecrypt TypeOf
        """,
        "it is another value at every look": """
            Rand RandStr Randn Shuffle Uniform Uuid
        """,
        "it is no value of one row": """
            AnyValue ApproxTopK ApproxTopKAccumulate ApproxTopKCombine ApproximatePercentile
            Average BitAndAgg BitOrAgg BitXorAgg BitmapAndAgg BitmapConstructAgg BitmapOrAgg
            BoolAnd BoolOr CollectList CollectSet CollectUnion Corr Count CountIf
            CountMinSketchAgg CounterDiff CovPopulation CovSample CumeDist DenseRank Explode
            First Grouping GroupingID HistogramNumeric HllSketchAgg HllUnionAgg
            HyperLogLogPlusPlus Inline KllMergeAggBigint KllMergeAggDouble KllMergeAggFloat
            KllSketchAggBigint KllSketchAggDouble KllSketchAggFloat Kurtosis Lag Last Lead
            ListAgg Max MaxBy Measure Median Min MinBy Mode NTile NthValue PercentRank
            Percentile PercentileCont PercentileDisc PosExplode Product Rank RegrAvgX RegrAvgY
            RegrCount RegrIntercept RegrR2 RegrSXX RegrSXY RegrSYY RegrSlope RowNumber Skewness
            Stack StddevPop StddevSamp Sum ThetaIntersectionAgg ThetaSketchAgg ThetaUnionAgg
            TryAverage TrySum TupleIntersectionAggDouble TupleIntersectionAggInteger
            TupleSketchAggDouble TupleSketchAggInteger TupleUnionAggDouble TupleUnionAggInteger
            VariancePop VarianceSamp
        """,
        "other formats are not read in a filter": """
            CsvToStructs FromAvro FromProtobuf IsValidVariant IsVariantNull ParseJson
            SchemaOfAvro SchemaOfCsv SchemaOfVariant SchemaOfVariantAgg SchemaOfXml StructsToCsv
            StructsToXml ToAvro ToProtobuf ToVariantObject TryParseJson TryVariantArrayAppend
            TryVariantGet TryVariantInsert TryVariantSet VariantArrayAppend VariantDelete
            VariantGet VariantInsert VariantSet VariantStripNulls XPathBoolean XPathDouble
            XPathFloat XPathInt XPathList XPathLong XPathShort XPathString XmlToStructs
        """,
        "regular expressions have no counterpart here": """
            RLike RegExpCount RegExpExtract RegExpExtractAll RegExpInStr RegExpReplace
            RegExpSubStr
        """,
        "sketches have no counterpart here": """
            ApproxTopKEstimate HllSketchEstimate HllUnion KllSketchGetNBigint
            KllSketchGetNDouble KllSketchGetNFloat KllSketchGetQuantileBigint
            KllSketchGetQuantileDouble KllSketchGetQuantileFloat KllSketchGetRankBigint
            KllSketchGetRankDouble KllSketchGetRankFloat KllSketchMergeBigint
            KllSketchMergeDouble KllSketchMergeFloat KllSketchToStringBigint
            KllSketchToStringDouble KllSketchToStringFloat ThetaDifference ThetaIntersection
            ThetaSketchEstimate ThetaUnion TupleDifferenceDouble TupleDifferenceInteger
            TupleDifferenceThetaDouble TupleDifferenceThetaInteger TupleIntersectionDouble
            TupleIntersectionInteger TupleIntersectionThetaDouble TupleIntersectionThetaInteger
            TupleSketchEstimateDouble TupleSketchEstimateInteger TupleSketchSummaryDouble
            TupleSketchSummaryInteger TupleSketchThetaDouble TupleSketchThetaInteger
            TupleUnionDouble TupleUnionInteger TupleUnionThetaDouble TupleUnionThetaInteger
        """,
        "structs are not made here": """
            CreateNamedStruct
        """,
        "text is compared by its bytes here": """
            Collate Collation
        """,
        "this function of numbers has no counterpart here; of constants it is its value": """
            Acos Acosh Asin Asinh Atan Atan2 Atanh BRound Bin Cbrt Conv Cos Cosh Cot Csc
            EulerNumber Exp Expm1 Factorial Hypot Log Log10 Log1p Log2 Logarithm Pi Pmod Pow
            Rint Sec Sin Sinh Tan Tanh Unhex WidthBucket
        """,
        "this function of text has no counterpart here; of constants it is its value": """
            Base32 Base64 Chr Decode Elt Encode FindInSet FormatNumber FormatString InitCap
            IsValidUTF8 JaroWinkler Levenshtein Luhncheck MakeValidUTF8 Mask Overlay Quote
            Sentences SoundEx StringSpace StringSplit SubstringIndex ToBinary ToCharacter
            ToNumber TryToBinary TryToNumber TryValidateUTF8 UnBase32 UnBase64 ValidateUTF8
        """,
        "this function of times has no counterpart here; of constants it is its value": """
            CurrentTime CurrentTimeZone DateFormatClass DateFromUnixDate DayName
            FromUnixTime MakeTime MakeTimestamp MakeTimestampLTZ
            MakeTimestampNTZ MicrosToTimestamp MillisToTimestamp MonthName MonthsBetween
            NanosToTimestamp NextDay ParseToDate ParseToTimestamp ParseToTimestampLTZ
            ParseToTimestampNTZ SessionWindow TimeBucket TimeDiff TimeFromMicros TimeFromMillis
            TimeFromSeconds TimeToMicros TimeToMillis TimeToSeconds TimeTrunc TimeWindow
            TimestampAdd TimestampDiff ToTime
            ToUnixTimestamp TryMakeTimestamp TryMakeTimestampLTZ
            TryMakeTimestampNTZ TryToDate TryToTime TryToTimestamp UnixDate UnixMillis UnixNanos
            UnixSeconds UnixTimestamp WindowTime
        """,
        "vectors have no counterpart here": """
            VectorAvg VectorCosineSimilarity VectorInnerProduct VectorL2Distance VectorNorm
            VectorNormalize VectorSum
        """,
        "what is computed from whole lists has no counterpart here": """
            ArrayAppend ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayInsert
            ArrayIntersect ArrayJoin ArrayMax ArrayMin ArrayPosition ArrayPrepend ArrayRemove
            ArrayRepeat ArrayUnion ArraysOverlap ArraysZip CreateArray Flatten Sequence Slice
            SortArray
        """,
        "what is computed from whole maps has no counterpart here": """
            CreateMap MapConcat MapContainsKey MapEntries MapFromArrays MapFromEntries MapKeys
            MapValues StringToMap
        """,
        "written as LIKE with AND or NOT": """
            LikeAll NotLikeAll NotLikeAny
        """,
    }.items()
}
